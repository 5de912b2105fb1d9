"""`clearhead serve`: runs behind an HTTP API, with continuous batching.

The engine (engine.py) needs nothing beyond torch; the API needs FastAPI and uvicorn: `pip install 'clearhead[serve]'`.
"""

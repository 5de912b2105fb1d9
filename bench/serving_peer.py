"""What `bench/serving.py` is compared with: `transformers` behind FastAPI, one request after the other.

python bench/serving_peer.py EXPORTED
"""

import socket
import sys
import threading
from pathlib import Path
from typing import Any

import torch
import transformers
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel


class Asked(BaseModel):
    """The settings of `/generate` that the load test uses."""

    prompt: str
    tokens: int
    seed: int
    top_k: int
    top_p: float


def build_app(folder: Path) -> FastAPI:
    """An application that continues a prompt; the model computes for one request at a time."""
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(folder)
    model.eval()
    app = FastAPI()
    lock = threading.Lock()

    @app.post("/generate")
    def generate(asked: Asked) -> dict[str, Any]:
        with lock, torch.inference_mode():
            torch.manual_seed(asked.seed)
            encoded = tokenizer(asked.prompt, return_tensors="pt")
            settings = {"max_new_tokens": asked.tokens, "top_k": asked.top_k, "top_p": asked.top_p, "temperature": 0.8}
            [row] = model.generate(**encoded, do_sample=True, **settings)
        new = row[encoded["input_ids"].size(1) :]
        return {"texts": [{"text": tokenizer.decode(new, skip_special_tokens=True), "tokens": len(new)}]}

    return app


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(build_app(Path(sys.argv[1])), log_level="warning"))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/", file=sys.stderr, flush=True)
    server.run(sockets=[listener])


if __name__ == "__main__":
    main()

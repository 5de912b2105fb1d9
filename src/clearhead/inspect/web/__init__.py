"""The explorer: a page in the browser, and the server that answers its requests."""

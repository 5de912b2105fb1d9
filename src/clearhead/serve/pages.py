"""The web pages: translate and chat, the API reference, and the explorer of each run."""

# Annotations are evaluated here, unlike elsewhere: FastAPI reads them.

import asyncio
import mimetypes
from pathlib import Path
from threading import Lock
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException

from clearhead.config import UserError
from clearhead.inspect.web.explorer import Explorer
from clearhead.inspect.web.server import encode_answer, page_files, read_traces
from clearhead.serve.service import Service

PAGE = Path(__file__).parent / "page"
FILES = {path.name: path for path in PAGE.iterdir() if path.is_file()} | {"icon.svg": page_files()["icon.svg"]}


def routes() -> APIRouter:
    """The page to translate and chat, and the API reference; they load nothing from other servers."""
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    async def page() -> FileResponse:
        return FileResponse(FILES["index.html"])

    @router.get("/docs")
    async def documentation() -> FileResponse:
        return FileResponse(FILES["docs.html"])

    @router.get("/page/{name}")
    async def file(name: str) -> FileResponse:
        if name not in FILES:
            raise HTTPException(404, f"there is no {name}")
        return FileResponse(FILES[name], media_type=mimetypes.guess_type(name)[0])

    return router


class Explorers:
    """The explorer of each run, with its own copy of the model; opened at the first visit."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.files = page_files()
        self.opened: dict[str, Explorer] = {}
        self.lock = Lock()

    def find(self, name: str) -> Explorer:
        """Return the explorer of a run."""
        with self.lock:
            if name not in self.opened:
                self.opened[name] = Explorer([self.service.runs[name].folder])
            return self.opened[name]

    def answer(self, name: str, path: str, query: dict[str, str]) -> Response:
        """Return what the explorer answers."""
        try:
            found = self.find(name).answer(path, query)
        except UserError as error:
            return JSONResponse({"error": str(error)}, 400)  # the form that its page reads
        body, media_type, headers = encode_answer(found)
        return Response(body, media_type=media_type, headers=headers)

    def routes(self) -> APIRouter:
        """The explorer's page and requests, below the name of the run."""
        router = APIRouter(prefix="/explore", include_in_schema=False)

        @router.get("/{name}")
        async def with_slash(name: str) -> RedirectResponse:
            return RedirectResponse(f"{quote(name, safe='')}/")

        @router.get("/{name}/api/{path:path}")
        async def answer(name: str, path: str, request: Request) -> Response:
            self.check(name)
            return await asyncio.to_thread(self.answer, name, path, dict(request.query_params))

        @router.post("/{name}/api/close")
        async def close(name: str, request: Request) -> Response:
            self.check(name)
            traces = read_traces(await request.body())
            if traces is None:
                raise HTTPException(400, "only a list of traces can be closed")
            await asyncio.to_thread(self.find(name).close, traces)
            return JSONResponse({})

        @router.get("/{name}/{path:path}")
        async def file(name: str, path: str) -> FileResponse:
            self.check(name)
            if path not in self.files:
                raise HTTPException(404, f"there is no {path}")
            return FileResponse(self.files[path], media_type=mimetypes.guess_type(self.files[path].name)[0])

        return router

    def check(self, name: str) -> None:
        """Refuse the name of a run that is not served."""
        if name not in self.service.runs:
            raise HTTPException(404, f"there is no run {name}")

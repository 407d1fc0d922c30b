"""Plans over HTTP (see `textor.broker.plans`).

| way | |
|---|---|
| GET /v1/plans | the plans, the last used first |
| POST /v1/plans | `{request, profile, model, attended}` -> `{id}` |
| GET /v1/plans/ID?after=N | the plan; with N, once something happened after its event N |
| PUT /v1/plans/ID | `{text}`: the whole list anew |
| PUT /v1/plans/ID/lines/LINE | `{text}`, `{choice}`, `{skip}`: what a person changes |
| POST /v1/plans/ID/run | `{lines, go_on}`; without lines all that were not run |
| POST /v1/plans/ID/stop | `{now}` |
| POST /v1/plans/ID/answer | `{line, allow, reason}`: at the gate |
| POST /v1/plans/ID/again | `{remark}`: the model writes it once more |
| GET /v1/plans/ID/values/HANDLE | a picture or a file that came of a line |

All but the first two and the last answer with the plan.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from textor.broker.plans import Plans
from textor.broker.view import plan_json
from textor.errors import UseError
from textor.server.answers import Endpoint, Refused, answering, as_json, body_of, read_json

if TYPE_CHECKING:
    from textor.assembly import Machine

T = TypeVar("T")


class PlanWish(msgspec.Struct, frozen=True):
    request: str
    profile: str | None = None
    model: str = ""
    attended: bool = True
    id: str = ""


class Text(msgspec.Struct, frozen=True):
    text: str


class LineWish(msgspec.Struct, frozen=True):
    text: str | None = None
    choice: str | None = None
    skip: bool | None = None


class Run(msgspec.Struct, frozen=True):
    lines: list[str] | None = None
    go_on: bool = False


class Stop(msgspec.Struct, frozen=True):
    now: bool = False


class Answer(msgspec.Struct, frozen=True):
    line: str
    allow: bool
    reason: str = ""


class Remark(msgspec.Struct, frozen=True):
    remark: str = ""


def plan_routes(machine: Machine, token: str, workspace: Path) -> list[Route]:
    api = Api(machine, workspace)

    def private(path: str, endpoint: Endpoint, method: str = "GET") -> Route:
        return Route(f"/v1/plans{path}", answering(endpoint, token), methods=[method])

    return [
        private("", api.listed),
        private("", api.create, "POST"),
        private("/{plan}", api.read),
        private("/{plan}", api.edit, "PUT"),
        private("/{plan}/lines/{line}", api.change, "PUT"),
        private("/{plan}/run", api.run, "POST"),
        private("/{plan}/stop", api.stop, "POST"),
        private("/{plan}/answer", api.answer, "POST"),
        private("/{plan}/again", api.again, "POST"),
        private("/{plan}/values/{handle}", api.value),
    ]


class Api:
    def __init__(self, machine: Machine, workspace: Path) -> None:
        self._machine = machine
        self._workspace = workspace

    @property
    def plans(self) -> Plans:
        return self._machine.broker.plans

    async def listed(self, request: Request) -> Response:
        return as_json({"plans": await self.plans.listed()})

    async def create(self, request: Request) -> Response:
        wish = await _read(request, PlanWish)
        id = await self.plans.create(
            wish.request,
            workspace=self._workspace,
            profile=wish.profile,
            model=wish.model,
            attended=wish.attended,
            id=wish.id,
        )
        return as_json({"id": id}, 201)

    async def read(self, request: Request) -> Response:
        id = await self._known(request)
        after = request.query_params.get("after", "")
        if after.isdecimal() and len(after) < 16:
            await self.plans.wait(id, int(after))
        return await self._plan(id)

    async def edit(self, request: Request) -> Response:
        id = await self._known(request)
        await self.plans.edit(id, (await _read(request, Text)).text)
        return await self._plan(id)

    async def change(self, request: Request) -> Response:
        id, line = await self._known(request), request.path_params["line"]
        wish = await _read(request, LineWish)
        if wish.text is not None:
            await self.plans.edit_line(id, line, wish.text)
        if wish.choice is not None:
            await self.plans.choose(id, line, wish.choice)
        if wish.skip is not None:
            await self.plans.skip(id, line, wish.skip)
        return await self._plan(id)

    async def run(self, request: Request) -> Response:
        id = await self._known(request)
        wish = await _read(request, Run)
        await self.plans.run(id, wish.lines, go_on=wish.go_on)
        return await self._plan(id)

    async def value(self, request: Request) -> Response:
        id = await self._known(request)
        try:
            value, content = await self.plans.content(id, request.path_params["handle"])
        except UseError as error:
            raise Refused(404, str(error)) from None
        # A stranger's page or SVG: nothing in it may run as ours, whoever opens the address.
        return Response(content, media_type=value.media_type, headers={"content-disposition": "attachment"})

    async def stop(self, request: Request) -> Response:
        id = await self._known(request)
        await self.plans.stop(id, now=(await _read(request, Stop)).now)
        return await self._plan(id)

    async def answer(self, request: Request) -> Response:
        id = await self._known(request)
        wish = await _read(request, Answer)
        await self.plans.answer(id, wish.line, wish.allow, wish.reason)
        return await self._plan(id)

    async def again(self, request: Request) -> Response:
        id = await self._known(request)
        await self.plans.again(id, (await _read(request, Remark)).remark)
        return await self._plan(id)

    async def _known(self, request: Request) -> str:
        try:
            return (await self.plans.draft(request.path_params["plan"])).id
        except UseError as error:
            raise Refused(404, str(error)) from None

    async def _plan(self, id: str) -> Response:
        return as_json(await plan_json(self.plans, id))


async def _read(request: Request, type: type[T]) -> T:
    return read_json(await body_of(request) or b"{}", type)

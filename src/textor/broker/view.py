"""Apps and plans as JSON, for the page, the command line and whoever else asks over HTTP."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from textor.actions import Capability, Catalogue
from textor.arguments import describe
from textor.broker.book import App, Book, Record
from textor.broker.draft import Draft
from textor.broker.forms import KINDS, METHODS, ExampleForm, Form
from textor.broker.plans import Plans, Queue, Resolved
from textor.broker.provider import AppsProvider
from textor.dialects.plan_lines import phrases_of
from textor.values import Value


def document_form(form: Form) -> dict[str, Any]:
    """A capability as the document lists them: without path and vector, kinds as numbers."""
    return {
        "action": form.action,
        "appClass": form.app_class,
        "appPath": None,
        "actionType": KINDS.index(form.kind),
        "description": form.description,
        "route": form.route,
        "method": METHODS.index(form.method),
        "contentType": form.content_type,
        "contract": form.contract,
        "vector": None,
    }


def document_example(form: ExampleForm) -> dict[str, Any]:
    return {"appClass": form.app_class, "question": form.question, "answers": list(form.answers)}


def app_json(app: App, apps: AppsProvider, records: Iterable[Record]) -> dict[str, Any]:
    """One app with what it can do, its examples and its windows."""
    form, book = app.launch.form, apps.book
    names = [f"{app.launch.area}.start", *(entry.name for entry in app.entries.values())]
    return {
        "class": app.name,
        "area": app.launch.area,
        "title": form.title or app.name,
        "purpose": form.description,
        "program": [form.path, *form.arguments],
        "version": form.version,
        "icon": form.icon,
        "capabilities": [capability_json(book.capabilities[name]) for name in names],
        "examples": [document_example(x) for x in book.examples.values() if x.app_class == app.name],
        "instances": [instance_json(r, apps) for r in records if r.app_class == app.name],
    }


def capability_json(capability: Capability) -> dict[str, Any]:
    return {
        "name": capability.name,
        "phrase": capability.phrases[0],
        "purpose": capability.purpose,
        "effects": list(capability.effects),
        "parameters": parameters_json(capability),
    }


def parameters_json(capability: Capability) -> list[dict[str, Any]]:
    """The contract in words: each parameter, what it takes, whether it must be there."""
    schema = capability.parameters
    required = schema.get("required") or ()
    return [
        {"name": name, "takes": describe(inner, schema), "required": name in required}
        for name, inner in (schema.get("properties") or {}).items()
    ]


def instance_json(record: Record, apps: AppsProvider) -> dict[str, Any]:
    """A row of the port map; the address opens the window, so it is for the person alone."""
    return {
        "id": record.id,
        "class": record.app_class,
        "port": record.port,
        "pid": record.pid,
        "started": record.started,
        "state": "ready",
        "chosen": record.chosen > record.started,
        "address": apps.address(record),
    }


def profiles_json(book: Book) -> dict[str, Any]:
    return {
        "active": book.active,
        "profiles": [{"name": name, "apps": list(p.apps)} for name, p in book.profiles.items()],
        "apps": list(book.apps),
    }


async def plan_json(plans: Plans, id: str) -> dict[str, Any]:
    """A plan with its lines, each with what it means, what else it may mean, and what came of it.
    Raises `UseError` when there is none of this id."""
    draft = await plans.draft(id)
    queue = plans.queue(id)
    lines = await plans.resolved(draft)
    catalogue = plans.catalogue(draft)
    busy = bool(queue.running) or any(not attempt.ended for attempt in draft.attempts.values())
    return {
        "id": id,
        "seq": draft.seq,
        "request": draft.settings.request,
        "profile": draft.settings.profile,
        "model": draft.model,
        "status": "running" if busy and draft.status == "ready" else draft.status,
        "detail": draft.detail,
        "halted": queue.halted,
        "original": draft.original,
        "text": draft.text,
        "reviewed": draft.reviewed,
        "lines": [_line_json(each, draft, queue, catalogue) for each in lines],
    }


def _line_json(each: Resolved, draft: Draft, queue: Queue, catalogue: Catalogue) -> dict[str, Any]:
    line, compiled, ready = each.line, each.compiled, each.ready
    return {
        "id": line.id,
        "text": line.text,
        "skip": line.skip,
        "choice": line.choice,
        "state": "note" if each.note else compiled.state,
        "ready": ready is not None,
        "capability": ready.capability.name if ready else "",
        "phrase": ready.capability.phrases[0] if ready else "",
        "score": compiled.candidates[0].score if compiled.candidates else 0.0,
        "exact": compiled.exact,
        "fault": each.fault,
        "texts": list(compiled.parameters),
        "arguments": ready.arguments if ready else {},
        "parameters": parameters_json(ready.capability) if ready else [],
        "candidates": [_candidate_json(c, catalogue) for c in compiled.candidates],
        "run": _run_json(line.id, draft, queue),
    }


def _candidate_json(candidate: Any, catalogue: Catalogue) -> dict[str, Any]:
    capability = catalogue.get(candidate.capability)
    shown = phrases_of(capability) if capability else ()
    return {
        "capability": candidate.capability,
        "phrase": shown[0].shown if shown else candidate.capability,
        "score": candidate.score,
        "probability": candidate.probability,
        "objection": candidate.objection,
    }


def _run_json(line: str, draft: Draft, queue: Queue) -> dict[str, Any]:
    runs = draft.runs_of(line)
    last = runs[-1] if runs else None
    state = "queued" if line in queue.ids else (last.state if last else "")
    return {
        "state": state,
        "text": last.text if last else "",
        "action": last.action if last else "",
        "digest": last.digest if last else "",
        "reason": last.reason if last else "",
        "window": last.window if last else "",
        "values": [value_json(value) for value in last.values] if last else [],
        "log": [entry for run in runs for entry in run.log],
    }


def value_json(value: Value) -> dict[str, Any]:
    return {
        "name": value.name,
        "kind": value.kind,
        "media_type": value.media_type,
        "size": value.size,
        "handle": value.handle,
    }

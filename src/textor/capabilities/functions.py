"""Any typed Python function as a capability.

The schema comes from the signature by pydantic, which is imported when the first schema is asked
for and not before; names and texts come from the function and its docstring.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, overload

from textor.actions import EFFECTS, Action, Capability, Effect, Outcome, Repeat
from textor.capabilities.docstrings import read_docstring
from textor.capabilities.places import judged, map_paths
from textor.capabilities.port import Scope
from textor.capabilities.results import failure, outcome_of
from textor.errors import CapabilityError, UseError
from textor.values import Json

if TYPE_CHECKING:
    from pydantic import TypeAdapter

F = TypeVar("F", bound=Callable[..., Any])

_MARK = "__textor_capability__"
_NAME = re.compile(r"[A-Za-z_]\w*([.\-][A-Za-z_]\w*)*")


@dataclass(frozen=True)
class Mark:
    """What `@capability` was told about a function. `names` are the local names at that place,
    for annotations that are written as text."""

    name: str | None = None
    purpose: str | None = None
    effects: tuple[Effect, ...] = ("read",)
    repeat: Repeat = "once"
    phrases: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    names: dict[str, Any] = field(default_factory=dict, repr=False)


@overload
def capability(function: F, /) -> F: ...
@overload
def capability(
    function: None = None,
    /,
    *,
    name: str | None = None,
    purpose: str | None = None,
    effects: Sequence[Effect] | Effect = ("read",),
    repeat: Repeat = "once",
    phrases: Sequence[str] | str = (),
    examples: Sequence[str] | str = (),
) -> Callable[[F], F]: ...
def capability(
    function: F | None = None,
    /,
    *,
    name: str | None = None,
    purpose: str | None = None,
    effects: Sequence[Effect] | Effect = ("read",),
    repeat: Repeat = "once",
    phrases: Sequence[str] | str = (),
    examples: Sequence[str] | str = (),
) -> F | Callable[[F], F]:
    """Mark a function as a capability; it stays the function it was.

    `name` is `area.verb` (default: the function's name), `purpose` what it is for (default: the
    first paragraph of the docstring). A parameter annotated `Scope` is handed in and not shown to
    the model. `UseError` for an effect or a way to repeat that does not exist.
    """
    kinds = _words(effects)
    for effect in kinds:
        if effect not in EFFECTS:
            raise UseError(f"There is no effect {effect!r}.", f"Use some of: {', '.join(EFFECTS)}.")
    if repeat not in typing.get_args(Repeat):
        raise UseError(f"There is no repeat {repeat!r}.", "Use idempotent, keyed or once.")
    frame = sys._getframe(1)
    local = dict(frame.f_locals) if frame.f_locals is not frame.f_globals else {}
    mark = Mark(
        name,
        purpose,
        typing.cast("tuple[Effect, ...]", kinds),
        repeat,
        _words(phrases),
        _words(examples),
        local,
    )

    def decorate(function: F) -> F:
        # of a bound, class or static method the function underneath, which all of them share
        target = getattr(function, "__func__", function)
        try:
            setattr(target, _MARK, mark)
        except (AttributeError, TypeError):  # the latter for a class of Python itself
            raise UseError(f"capability marks functions, not {function!r:.80}.") from None
        return function

    return decorate if function is None else decorate(function)


def _words(words: Sequence[str] | str) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)


@dataclass(frozen=True)
class Function:
    """A function that was read: its capability, and how to check each argument."""

    call: Callable[..., Any]
    capability: Capability
    signature: inspect.Signature
    adapters: dict[str, TypeAdapter[Any]]
    scopes: tuple[str, ...]  #: parameters that get the scope
    is_async: bool


class FunctionProvider:
    """Serves Python functions. Signatures are read when the capabilities are first asked for."""

    def __init__(self, functions: Iterable[Callable[..., Any]], name: str = "functions") -> None:
        self.name = name
        self._given = tuple(functions)
        self._read: dict[str, Function] | None = None

    async def capabilities(self) -> Sequence[Capability]:
        return [function.capability for function in self._functions().values()]

    async def invoke(self, action: Action, scope: Scope) -> Outcome:
        function = self._functions().get(action.capability)
        if function is None:
            return Outcome.failed(f"{self.name} has no capability {action.capability!r}.")
        try:
            bound = _bound(function, action.arguments, scope)
        except CapabilityError as error:
            return Outcome.failed(str(error))
        return await _perform(function, bound, scope)

    async def close(self) -> None:
        """Nothing is held between two actions."""

    def _functions(self) -> dict[str, Function]:
        if self._read is None:
            read: dict[str, Function] = {}
            for given in self._given:
                function = read_function(given, self.name)
                if function.capability.name in read:
                    raise UseError(
                        f"Two functions have the name {function.capability.name!r}.",
                        'Give one another name: @capability(name="…").',
                    )
                read[function.capability.name] = function
            self._read = read
        return self._read


def read_function(function: Callable[..., Any], provider: str = "functions") -> Function:
    """The function with its capability; `UseError` says why one cannot be read."""
    mark: Mark = getattr(function, _MARK, Mark())
    own = getattr(function, "func", function)  # of a functools.partial
    name: str = mark.name or str(getattr(own, "__name__", type(own).__name__))
    if not _NAME.fullmatch(name):
        raise UseError(
            f"{name!r} is no name for a capability.", 'Give it one: @capability(name="area.verb").'
        )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise UseError(f"{name}: Python does not tell its parameters.", "Wrap it in a function.") from None
    hints = _hints(own, name, mark.names)
    doc = read_docstring(inspect.getdoc(own) or "")
    called = own if inspect.isroutine(own) else type(own).__call__
    is_async = inspect.iscoroutinefunction(inspect.unwrap(called))
    if any(
        yields(inspect.unwrap(called)) for yields in (inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    ):
        raise UseError(f"{name} yields its results one by one.", "An outcome is one result: return a list.")
    adapters: dict[str, TypeAdapter[Any]] = {}
    scopes: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
            raise UseError(
                f"{name}: the parameter {stars}{parameter.name} has no fixed names or number.",
                "Write each parameter out, or take one list.",
            )
        hint = hints.get(parameter.name, Any)
        if hint is Scope or Scope in typing.get_args(hint):
            scopes.append(parameter.name)
        else:
            described = doc.parameters.get(parameter.name, "")
            adapters[parameter.name] = _adapter(name, parameter, hint, described)
    capability = Capability(
        name,
        mark.purpose or doc.purpose or name.replace("_", " ").replace(".", " "),
        _schema(name, signature, adapters),
        mark.effects,
        mark.repeat,
        mark.phrases,
        mark.examples,
        provider,
        cancellable=is_async,  # a thread runs on whatever one wishes
    )
    return Function(function, capability, signature, adapters, tuple(scopes), is_async)


def _hints(function: Any, name: str, local: dict[str, Any]) -> dict[str, Any]:
    """The annotations as types. Text is read with the names of the function's module, those around
    the decorator, and `Scope`, which many import only for type checkers."""
    if not inspect.isroutine(function):
        function = type(function).__call__
    function = inspect.unwrap(getattr(function, "__func__", function))
    try:
        known = {"Scope": Scope, **getattr(function, "__globals__", {})}
        return typing.get_type_hints(function, known, local, include_extras=True)
    except Exception as error:
        raise UseError(f"{name}: its annotations cannot be read: {error}.") from None


def _adapter(name: str, parameter: inspect.Parameter, hint: Any, described: str) -> TypeAdapter[Any]:
    from pydantic import Field, TypeAdapter

    try:
        meta = getattr(hint, "__metadata__", ())
        words = next((word for word in meta if isinstance(word, str)), described)
        own = any(getattr(part, "description", None) for part in meta)
        if words and not own:
            hint = typing.Annotated[hint, Field(description=words)]
        return TypeAdapter(hint)
    except Exception as error:  # pydantic has many; all mean the same to a reader
        raise UseError(
            f"{name}: the type of the parameter {parameter.name} cannot be described: {_first_line(error)}",
            "Use plain types, dataclasses, TypedDict or pydantic models.",
        ) from None


def _schema(
    name: str, signature: inspect.Signature, adapters: dict[str, TypeAdapter[Any]]
) -> dict[str, Json]:
    """One JSON Schema of type object for all parameters, shared definitions under `$defs`."""
    from pydantic import TypeAdapter
    from pydantic_core import to_jsonable_python

    try:
        parts, shared = TypeAdapter.json_schemas(
            [(key, "validation", adapter) for key, adapter in adapters.items()],
            ref_template="#/$defs/{model}",
        )
    except Exception as error:
        raise UseError(f"{name}: its parameters have no JSON Schema: {_first_line(error)}") from None
    properties: dict[str, Json] = {}
    required: list[str] = []
    for key in adapters:
        part = dict(parts[key, "validation"])
        default = signature.parameters[key].default
        if default is inspect.Parameter.empty:
            required.append(key)
        else:
            try:
                part["default"] = to_jsonable_python(default)
            except Exception:  # a default that JSON cannot say is still the default
                part.pop("default", None)
        properties[key] = part
    schema: dict[str, Json] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
    return {**schema, **shared}


def _bound(function: Function, arguments: dict[str, Json], scope: Scope) -> inspect.BoundArguments:
    """The arguments as the types of the signature; `CapabilityError` says which does not fit.

    Relative paths become absolute ones in the workspace: the place that the gate judged is the
    place that the function gets, whatever this process's own folder is.
    """
    from pydantic import ValidationError

    name = function.capability.name
    placed: dict[str, Json] = map_paths(
        arguments, function.capability.parameters, lambda path: str(judged(path, scope))
    )
    for key in placed:
        if key not in function.adapters:
            raise CapabilityError(
                f"{name} has no parameter {key!r}.", f"It has: {', '.join(function.adapters) or 'none'}."
            )
    made: dict[str, Any] = dict.fromkeys(function.scopes, scope)
    for key, adapter in function.adapters.items():
        if key in placed:
            try:
                made[key] = adapter.validate_python(placed[key])
            except ValidationError as error:
                raise CapabilityError(f"{name}: {_explained(key, error)}") from None
        elif function.signature.parameters[key].default is inspect.Parameter.empty:
            raise CapabilityError(f"{name} needs the parameter {key!r}.")
    # in the order of the signature, as `BoundArguments` wants them
    bound = inspect.BoundArguments(
        function.signature,
        {key: made[key] for key in function.signature.parameters if key in made},
    )
    bound.apply_defaults()
    return bound


def _explained(key: str, error: Any) -> str:
    """The faults of one argument, each with its place in it."""
    faults = []
    for fault in error.errors(include_url=False)[:5]:
        place = "".join(f"[{step!r}]" for step in fault["loc"])
        faults.append(f"{key}{place}: {fault['msg']}, not {fault['input']!r:.80}")
    return "; ".join(faults) + "."


async def _perform(function: Function, bound: inspect.BoundArguments, scope: Scope) -> Outcome:
    """Call it: an async function here, any other in a thread. Cancelling passes through."""
    call = function.call
    try:
        if function.is_async:
            result = await call(*bound.args, **bound.kwargs)
        else:
            result = await asyncio.to_thread(_caught, call, bound)
            if isinstance(result, _Raised):
                raise result.error
            if inspect.isawaitable(result):
                result = await result
    except (Exception, SystemExit) as error:
        return failure(error)
    return outcome_of(result, scope)


@dataclass(frozen=True)
class _Raised:
    error: BaseException


def _caught(call: Callable[..., Any], bound: inspect.BoundArguments) -> Any:
    """The result or what was raised, as a value: a future cannot hold `StopIteration`, and
    `SystemExit` in a thread would end more than the function."""
    try:
        return call(*bound.args, **bound.kwargs)
    except BaseException as error:
        return _Raised(error)


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]

"""The configuration: what lies over what, what is refused and how it is said, what is hidden."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from textor.config import Config, File, config_path, line_of, load
from textor.config import text as config_text
from textor.errors import ConfigError
from textor.events import Limits


def written(folder: Path, text: str, env: dict[str, str] | None = None, **overrides: object) -> Config:
    path = folder / "config.toml"
    path.write_text(text, "utf-8")
    path.chmod(0o600)
    return load(path, env or {}, {k.replace("__", "."): v for k, v in overrides.items()})


def refused(folder: Path, text: str, env: dict[str, str] | None = None, **overrides: object) -> str:
    with pytest.raises(ConfigError) as caught:
        written(folder, text, env, **overrides)
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    config = load(env={"TEXTOR_CONFIG": str(tmp_path / "none.toml"), "TEXTOR_DATA": str(tmp_path)})
    assert config.models == {} and config.providers == {}
    assert config.limits == Limits(iterations=100, agents=50)
    assert (config.server.host, config.server.port) == ("127.0.0.1", 7771)
    assert config.gate.policy == "ask" and config.context.ratio == 0.6
    assert config.data == tmp_path
    assert "textor config init" in config.warnings[0]


def test_flags_lie_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    text = '[models]\ndefault = "a:1"\ncoder = "a:coder"\n[server]\nport = 1\nhost = "h"\n'
    config = written(tmp_path, text, {"TEXTOR_MODEL": "b:2", "TEXTOR_SERVER_PORT": "2"}, server__port=3)
    assert config.models == {"default": "b:2", "coder": "a:coder"}
    assert (config.server.host, config.server.port) == ("h", 3)
    assert config.sources["server.port"] == "--port"
    assert config.sources["models.default"] == "the environment variable TEXTOR_MODEL"
    assert config.sources["server.host"] == str(config.path)
    assert config.model_for("coder") == "a:coder" and config.model_for("main") == "b:2"


def test_the_base_of_own_images_is_an_image(tmp_path: Path) -> None:
    config = written(tmp_path, '[self]\nbase = "python:3.12-slim"\n', {"TEXTOR_SELF_BASE": "registry/b:1"})
    assert config.own.base == "registry/b:1" and 'base = "registry/b:1"' in config.show()
    told = refused(tmp_path, '[self]\nbase = "--privileged x"\n')
    assert "line 2: self.base" in told and "an image, such as python:3.12-slim" in told
    assert "self.image" in refused(tmp_path, '[self]\nimage = "x"\n')


def test_a_table_in_a_table_has_its_variables_and_its_password_is_no_ones(tmp_path: Path) -> None:
    text = '[apps.email]\nhost = "mail"\npassword = "s3cret"\n'
    config = written(tmp_path, text, {"TEXTOR_APPS_EMAIL_PORT": "2525", "TEXTOR_MODULES_GIT": '["g"]'})
    assert (config.apps.email.host, config.apps.email.port) == ("mail", 2525)
    assert config.modules.git == ("g",)
    told = written(tmp_path, "[apps]\nfacts = { Home = 'Oslo' }\n")
    assert told.apps.facts == {"Home": "Oslo"} and 'Home = "Oslo"' in told.show()
    assert "s3cret" not in config.show() and 'password = "********"' in config.show()
    assert "[apps" not in written(tmp_path, "").show()
    config.path.write_text(text)
    config.path.chmod(0o644)
    assert "chmod 600" in load(config.path, {}).warnings[0]


def test_options_that_were_not_given_change_nothing(tmp_path: Path) -> None:
    assert written(tmp_path, "[server]\nport = 5\n", server__port=None).server.port == 5


def test_all_sections_are_read(tmp_path: Path) -> None:
    config = written(
        tmp_path,
        """
        data = "~/x"
        [providers.mine]
        base_url = "http://127.0.0.1:1/v1"
        context_window = 4096
        system_as_user = true
        temperature = 1
        args = { seed = 1 }
        [providers.mine.models."gpt-4.1"]
        temperature = 0.5
        [limits]
        iterations = 3
        money = 1
        [gate]
        policy = "edits"
        """,
    )
    mine = config.providers["mine"]
    assert (mine.context_window, mine.system_as_user, mine.temperature) == (4096, True, 1.0)
    assert mine.args == {"seed": 1} and mine.models["gpt-4.1"].temperature == 0.5
    assert config.limits == Limits(iterations=3, money=1.0, agents=50)
    assert config.gate.policy == "edits"
    assert config.data == Path("~/x").expanduser()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[servr]\nport = 1", ["line 1", "servr is not known", "did you mean server?"]),
        ("[server]\n\nprt = 1", ["line 3", "server.prt is not known", "did you mean port?", "host, port"]),
        ('[server]\nport = "x"', ["line 2", 'server.port is "x"', "whole number from 0 to 65535"]),
        ("[server]\nport = 70000", ["server.port is 70000", "from 0 to 65535"]),
        ("[server]\nport = true", ["server.port is true", "whole number"]),
        ("server = 1", ["server is 1", "table of keys", "host, port"]),
        ('[gate]\npolicy = "always"', ['gate.policy is "always"', "one of ask, deny, edits, yes"]),
        ("[context]\nratio = 1.5", ["context.ratio is 1.5", "above 0 and up to 1"]),
        ("[context]\nratio = nan", ["context.ratio is not a finite number"]),
        ("[limits]\niterations = 0", ["limits.iterations is 0", "at least 1"]),
        ("[limits]\nmoney = -1.0", ["limits.money is -1.0", "at least 0"]),
        ('[models]\ndefault = "gpt-4o"', ["line 2", 'models.default is "gpt-4o"', "provider:name"]),
        ("[models]\ndefault = 3", ["models.default is 3", "provider:name"]),
        ("[providers.a]\ntemperature = 3", ["line 2", "providers.a.temperature is 3", "from 0 to 2"]),
        (
            '[providers.a.models."x.y"]\nb=1\ntemperature = 3',
            ["line 2", 'providers.a.models."x.y".b is not known'],
        ),
        ('[providers.a.models."x.y"]\ntemperature = 3', ['providers.a.models."x.y".temperature is 3']),
        ('[providers.a]\nbase_url = "localhost:1"', ["providers.a.base_url must be an address", "http://"]),
        ('[providers.a]\napikey = "s3cret"', ["providers.a.apikey is not known", "did you mean api_key?"]),
        ("[providers.a]\napi_key = 53", ["providers.a.api_key is ********; it must be text in quotes"]),
        ('[providers]\napi_key = "s3cret"', ["providers.api_key is ********", "table of keys"]),
        ("[server]\nport = = 1", ["is not valid TOML", "line 2"]),
    ],
)
def test_a_fault_is_one_sentence_with_its_place(tmp_path: Path, text: str, says: list[str]) -> None:
    sentence = refused(tmp_path, text)
    assert str(tmp_path / "config.toml") in sentence
    for part in says:
        assert part in sentence
    assert "s3cret" not in sentence


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({"TEXTOR_SERVER_PORT": "x"}, ["the environment variable TEXTOR_SERVER_PORT", "whole number"]),
        ({"TEXTOR_APPS_EMAIL_HSOT": "x"}, ["TEXTOR_APPS_EMAIL_HSOT", "[apps.email]", "did you mean host?"]),
        ({"TEXTOR_SERVER_PROT": "1"}, ["TEXTOR_SERVER_PROT", "did you mean port?"]),
        ({"TEXTOR_MODEL": "gpt"}, ["TEXTOR_MODEL", "provider:name"]),
        ({"TEXTOR_PROVIDERS_A_TEMPERATURE": "9"}, ["TEXTOR_PROVIDERS_A_TEMPERATURE", "from 0 to 2"]),
        ({"TEXTOR_PROVIDERS_A_ARGS": "{x"}, ["TEXTOR_PROVIDERS_A_ARGS", "JSON"]),
        ({"TEXTOR_PROVIDERS_A_KEY": "s3cret"}, ["TEXTOR_PROVIDERS_A_KEY", "api_key"]),
    ],
)
def test_a_fault_in_the_environment_names_its_variable(
    tmp_path: Path, env: dict[str, str], says: list[str]
) -> None:
    sentence = refused(tmp_path, "", env)
    for part in says:
        assert part in sentence
    assert "s3cret" not in sentence


def test_a_fault_in_an_option_names_it(tmp_path: Path) -> None:
    assert refused(tmp_path, "", models__default="gpt").startswith("--model: ")


def test_a_misspelt_variable_is_warned_about_and_a_foreign_one_is_not(tmp_path: Path) -> None:
    config = written(tmp_path, "", {"TEXTOR_MODLE": "a:b", "TEXTOR_SOMETHING_ELSE": "1"})
    assert len(config.warnings) == 1
    assert "TEXTOR_MODLE" in config.warnings[0] and "TEXTOR_MODEL?" in config.warnings[0]


def test_every_type_of_key_can_be_set_by_a_variable(tmp_path: Path) -> None:
    config = written(
        tmp_path,
        "[providers.my-own]\nbase_url = 'http://x'\n",
        {
            "TEXTOR_PROVIDERS_MY_OWN_SYSTEM_AS_USER": "true",
            "TEXTOR_PROVIDERS_MY_OWN_API_KEY": "123",
            "TEXTOR_PROVIDERS_LM_STUDIO_BASE_URL": "http://y",
            "TEXTOR_PROVIDERS_MY_OWN_ARGS": '{"seed": 1}',
            "TEXTOR_LIMITS_SECONDS": "1.5",
            "TEXTOR_LIMITS_TOKENS": "",
            "TEXTOR_MODELS_CODER": "a:b",
        },
    )
    mine = config.providers["my-own"]
    assert (mine.system_as_user, mine.api_key, mine.args) == (True, "123", {"seed": 1})
    assert config.providers["lm-studio"].base_url == "http://y"
    assert config.limits.seconds == 1.5 and config.limits.tokens is None
    assert config.models == {"coder": "a:b"}


def test_a_usual_key_fills_in_and_never_follows_to_another_address(tmp_path: Path) -> None:
    env = {"OPENAI_API_KEY": "usual", "GROQ_API_KEY": "groq"}
    assert written(tmp_path, "", env).providers["oai"].api_key == "usual"
    own = written(tmp_path, "[providers.oai]\napi_key = 'own'\n", env)
    assert own.providers["oai"].api_key == "own" and own.providers["groq"].api_key == "groq"
    elsewhere = written(tmp_path, "[providers.oai]\nbase_url = 'http://elsewhere'\n", env)
    assert elsewhere.providers["oai"].api_key == ""


SECRETS = """
[providers.a]
api_key = "s3cret-key"
base_url = "https://user:s3cret-pass@host/v1"
args = { extra_headers = { Authorization = "Bearer s3cret-bearer", other = "shown" }, max_tokens = 7 }
"""


def test_no_display_holds_a_secret(tmp_path: Path) -> None:
    config = written(tmp_path, SECRETS)
    for text in (config.show(), repr(config), f"{config}"):
        assert "s3cret" not in text
    assert config.providers["a"].api_key == "s3cret-key"


def test_what_is_shown_is_toml_and_says_where_it_comes_from(tmp_path: Path) -> None:
    config = written(
        tmp_path, SECRETS + '[providers.a.models."x.y"]\ntemperature = 1\n', {"TEXTOR_MODEL": "a:b"}
    )
    shown = tomllib.loads(config.show())
    assert shown["providers"]["a"]["api_key"] == "********"
    assert shown["providers"]["a"]["args"]["extra_headers"]["other"] == "shown"
    assert shown["providers"]["a"]["models"]["x.y"] == {"temperature": 1.0}
    assert shown["models"] == {"default": "a:b"}
    assert 'default = "a:b"  # the environment variable TEXTOR_MODEL' in config.show()


def test_keys_that_others_can_read_are_warned_about(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[providers.oai]\napi_key = "k"\n')
    path.chmod(0o644)
    (warning,) = load(path, {}).warnings
    assert "chmod 600" in warning
    path.chmod(0o600)
    assert load(path, {}).warnings == ()
    path.write_text("[server]\nport = 1\n")
    path.chmod(0o644)
    assert load(path, {}).warnings == ()


def test_the_written_file_is_valid_private_and_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config.toml"
    config_text.create(path)
    assert path.stat().st_mode & 0o777 == 0o600
    bare = load(tmp_path / "none.toml", {})
    made = load(path, {})
    assert (made.limits, made.server, made.gate, made.context) == (
        bare.limits,
        bare.server,
        bare.gate,
        bare.context,
    )
    with pytest.raises(ConfigError, match="exists already"):
        config_text.create(path)


def test_each_example_in_the_written_file_is_valid(tmp_path: Path) -> None:
    lines = config_text.TEMPLATE.splitlines()
    # An example is a comment that reads as a key or a header; prose does not.
    loose = [re.sub(r"^# (?=\[|\w+ = )", "", line) for line in lines]
    config = written(tmp_path, "\n".join(loose))
    assert config.providers["mine"].models["some-model"].context_window == 8192
    assert config.limits.money == 1.0 and config.models["default"]


def test_a_file_that_is_no_text_or_no_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load(path, {})
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path, {})
    path.write_bytes(b"\xef\xbb\xbf[server]\nport = 9\n")
    assert load(path, {}).server.port == 9


def test_the_place_of_the_file(tmp_path: Path) -> None:
    assert config_path({"TEXTOR_CONFIG": str(tmp_path / "x.toml")}) == tmp_path / "x.toml"
    assert config_path({}).parts[-2:] == ("textor", "config.toml")


def test_lines_are_found_by_path() -> None:
    text = 'a.b = 1\n[x]\ny = 2 # z = 3\n[[r]]\nk = 1\n["q.w"] # c\nk = 1\n'
    assert line_of(text, ("a", "b")) == 1
    assert line_of(text, ("x", "y")) == 3
    assert line_of(text, ("r", 0, "missing")) == 4
    assert line_of(text, ("q.w", "k")) == 7
    assert line_of(text, ("nothing",)) == 0


def test_a_misspelt_key_of_models_is_told(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[models]\ndefualt = "oai:gpt-4o"\n')
    with pytest.raises(ConfigError, match="Did you mean default"):
        load(file, env={})
    file.write_text('[models]\ncodr = "oai:gpt-4o"\nnight-clerk = "oai:gpt-4o"\n')
    (warning,) = load(file, env={}).warnings
    assert "models.codr" in warning and "Did you mean coder?" in warning
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "codr.md").write_text("You code.")
    assert load(file, env={}).warnings == ()


def keys_of(kind: Any, before: str = "") -> Iterator[str]:
    """The dotted keys of a struct and of those in it."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        for field in msgspec.structs.fields(kind):
            yield f"{before}{field.encode_name}"
            yield from keys_of(field.type, f"{before}{field.encode_name}.")
        return
    for part in get_args(kind):
        yield from keys_of(part, before)


def test_the_documentation_has_all_keys() -> None:
    page = (Path(__file__).parents[1] / "docs" / "configuration.md").read_text("utf-8")
    example = re.search(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert example is not None
    shown = set(re.findall(r"\w+", example[1]))
    assert [key for key in keys_of(File) if key.rpartition(".")[2] not in shown] == []


def test_a_type_has_more_iterations_than_the_default_unless_a_person_set_them(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    own = Limits(iterations=1000)
    file.write_text("[limits]\ntokens = 500\n")
    assert load(file, env={}).limits_of(own) == Limits(iterations=1000, tokens=500, agents=50)
    assert load(file, env={}).limits_of(Limits(iterations=10)).iterations == 100  # the lower one counts later
    assert load(file, env={}).limits_of(Limits()).iterations == 100
    assert load(file, env={}).limits_of(Limits(iterations=10**6)).iterations == 1000
    assert load(file, env={"TEXTOR_LIMITS_ITERATIONS": "60"}).limits_of(own).iterations == 60
    file.write_text("[limits]\niterations = 70\n")
    assert load(file, env={}).limits_of(own).iterations == 70

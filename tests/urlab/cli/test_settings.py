"""Settings: the command line before the environment before a file before the defaults; and `urlab config`."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer

from urlab.cli.main import app
from urlab.cli.settings import listen_to_environment

NO_SETTINGS = {"--config", "--help", "--version", "--install-completion", "--show-completion"}
FILE = """
[serve]
step-port = 6000
state_port = 6001
model-root = ["/a", "/b"]
play = false
step-mode = "direct"

[eval.serve]
workers = 2
"""


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def shown(cli_here: Any) -> Any:
    def options(*arguments: str) -> dict[str, tuple[Any, str]]:
        done = cli_here("config", *arguments, "--json")
        assert done.returncode == 0, done.stderr
        return {row["option"]: (row["value"], row["from"]) for row in json.loads(done.stdout)["options"]}

    return options


def test_without_settings_everything_is_the_default(shown: Any) -> None:
    options = shown()
    assert options["--step-port"] == (5559, "default")
    assert {source for _, source in options.values()} == {"default"}


def test_a_variable_wins_over_a_file_that_wins_over_the_default(
    shown: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(FILE)
    monkeypatch.setenv("URLAB_STATE_PORT", "7001")
    monkeypatch.setenv("URLAB_WRITE_ROOT", "/c:/d")
    options = shown("--config", str(file))
    assert options["--step-port"] == (6000, "file")
    assert options["--state-port"] == (7001, "environment")
    assert options["--info-port"] == (5557, "default")
    assert options["--model-root"] == (["/a", "/b"], "file")
    assert options["--write-root"] == (["/c", "/d"], "environment")
    assert options["--play"] == (False, "file")
    assert options["--step-mode"] == ("direct", "file")


def test_a_command_below_a_command_has_its_table(shown: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "settings.toml").write_text(FILE)
    monkeypatch.setenv("URLAB_CONFIG", str(tmp_path / "settings.toml"))
    assert shown("eval", "serve")["--workers"] == (2, "file")


def test_the_user_s_own_file_is_read_and_one_in_the_current_folder_is_not(
    shown: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "urlab.toml").write_text("[serve]\nstep-port = 1111\n")
    monkeypatch.chdir(tmp_path / "here")
    assert shown()["--step-port"] == (5559, "default")
    (tmp_path / "config" / "urlab").mkdir(parents=True)
    (tmp_path / "config" / "urlab" / "urlab.toml").write_text("[serve]\nstep-port = 2222\n")
    assert shown()["--step-port"] == (2222, "file")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[serv]\nhost = 'x'", "settings.toml:1: serv: unknown key (did you mean 'serve'?)"),
        ("[serve]\nhots = 'x'", "settings.toml:2: serve.hots: unknown key (did you mean 'host'?)"),
        ("[serve]\n\nstep-port = 'x'", "settings.toml:3: serve.step-port: "),
        ("[serve]\nstep-mode = 'driect'", "settings.toml:2: serve.step-mode: "),
        ("[serve]\nplay = 3", "settings.toml:2: serve.play: is 3, expected true or false"),
        ("[serve]\nhost = ['a', 'b']", "--host takes one value"),
        ("[serve", "not TOML"),
    ],
)
def test_a_mistake_in_the_file_is_told_with_its_place(cli_here: Any, tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "settings.toml").write_text(text)
    done = cli_here("serve", "--config", str(tmp_path / "settings.toml"))
    assert done.returncode == 2
    assert complaint in done.stderr


def test_a_file_that_is_not_there_is_told(cli_here: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("URLAB_CONFIG", "/no/such/file.toml")
    done = cli_here("ping")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the settings file /no/such/file.toml cannot be read: No such file" in done.stderr


def test_what_the_command_line_says_wins(serving: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server takes its options from all three, and listens where they say."""
    (tmp_path / "settings.toml").write_text("[serve]\nplay = false\nhost = '127.0.0.3'\nlog-format = 'json'\n")
    monkeypatch.setenv("URLAB_HOST", "127.0.0.2")
    server = serving("--config", str(tmp_path / "settings.toml"))
    assert server.ready["step"].startswith("tcp://127.0.0.2:")
    code, log = server.end(15)
    assert code == 0
    lines = [json.loads(line) for line in log.splitlines()]
    (serves,) = (line for line in lines if line["message"] == "serving level demo")
    assert serves["data"]["step"] == server.ready["step"]
    assert {"time", "level", "logger", "message", "thread"} <= set(lines[-1])


def test_people_get_a_table(cli_here: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("URLAB_STEP_PORT", "6000")
    done = cli_here("config")
    assert done.returncode == 0
    (row,) = (line.split() for line in done.stdout.splitlines() if line.startswith("--step-port"))
    assert row == ["--step-port", "6000", "environment", "URLAB_STEP_PORT"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [(["eval"], "eval has commands of its own"), (["sevre"], "there is no command 'sevre'; there are: ")],
)
def test_a_command_that_is_none_is_wrong_use(cli_here: Any, words: list[str], complaint: str) -> None:
    done = cli_here("config", *words)
    assert done.returncode == 2
    assert complaint in done.stderr


def test_every_option_of_every_command_has_a_variable() -> None:
    root = typer.main.get_command(app)
    listen_to_environment(root)

    def without(command: Any) -> list[str]:
        options = [one for one in command.params if one.opts[0].startswith("--")]
        own = [f"{command.name} {one.opts[0]}" for one in options if not str(one.envvar).startswith("URLAB_")]
        return own + [word for below in getattr(command, "commands", {}).values() for word in without(below)]

    assert {word.rpartition(" ")[2] for word in without(root)} <= NO_SETTINGS, without(root)


def test_a_server_that_every_machine_may_drive_shouts(serving: Any) -> None:
    said = serving("--host", "0.0.0.0", "--insecure", "--no-play", "--no-web").end(15)[1]
    assert "EVERY MACHINE that reaches this address may drive this server, unencrypted (--insecure)" in " ".join(
        said.split()
    )

"""Secrets: read when sent, and never seen again."""

import base64
import json
from pathlib import Path
from urllib.parse import quote

import pytest

from executor.secrets import Redactor, resolve_secret
from ingest.errors import SecretMissing


def test_a_reference_to_the_environment_is_read_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("first-value", "rotated-value"):
        monkeypatch.setenv("VENDOR_KEY", value)
        assert resolve_secret("env:VENDOR_KEY") == value


def test_a_reference_to_a_file_is_read_without_its_line_end(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("file-value\n")
    assert resolve_secret(f"file:{tmp_path}/key") == "file-value"


@pytest.mark.parametrize(
    "reference", ["env:NO_SUCH_NAME", "file:/no/such/file", "file:/", "file:/a\x00b", "vault:x", "literal", "", "env:"]
)
def test_what_cannot_be_read_says_what_to_write(reference: str) -> None:
    with pytest.raises(SecretMissing):
        resolve_secret(reference)


def test_an_empty_a_binary_and_an_endless_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text(" \n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00secret")
    for name, text in (("empty", "empty"), ("binary", "not a text file")):
        with pytest.raises(SecretMissing, match=text):
            resolve_secret(f"file:{tmp_path}/{name}")
    (tmp_path / "large").write_text("x" * 70_000)
    with pytest.raises(SecretMissing, match="too large"):
        resolve_secret(f"file:{tmp_path}/large")


@pytest.mark.parametrize("path", ["/proc/self/environ", "/dev/zero", "/sys/kernel/hostname", "link", "folder"])
def test_what_is_no_plain_file_is_refused(path: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/proc/self/environ")
    (tmp_path / "folder").mkdir()
    reference = path if path.startswith("/") else f"{tmp_path}/{path}"
    with pytest.raises(SecretMissing, match=r"plain file|No such file"):
        resolve_secret(f"file:{reference}")


def test_a_settings_file_is_no_secret(tmp_path: Path) -> None:
    (tmp_path / "ingest.toml").write_text('home = ".ingest"\ndatabase_url = "postgresql://u:p@h/d"\n')
    with pytest.raises(SecretMissing, match="line break"):
        resolve_secret(f"file:{tmp_path}/ingest.toml")


@pytest.mark.parametrize("name", ["INGEST_DATABASE_URL", "PGPASSWORD"])
def test_what_the_installation_runs_on_is_no_credential(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "postgresql://ingest:pw@db/ingest")
    with pytest.raises(SecretMissing, match="belongs to the installation"):
        resolve_secret(f"env:{name}")


def test_an_environment_that_is_not_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VENDOR_KEY", "bad-\udcff-bytes")
    with pytest.raises(SecretMissing, match="control character"):
        resolve_secret("env:VENDOR_KEY")


NASTY = 'pa+ss/w=or&d "é\\%'


@pytest.mark.parametrize(
    "spelling",
    [
        NASTY,
        quote(NASTY, safe=""),
        quote(NASTY, safe="").lower().replace("%c3%a9", "%c3%a9"),
        quote(NASTY),
        json.dumps(NASTY)[1:-1],
        json.dumps(NASTY, ensure_ascii=False)[1:-1],
        base64.b64encode(NASTY.encode()).decode(),
        base64.urlsafe_b64encode(NASTY.encode()).decode().rstrip("="),
    ],
)
def test_a_secret_is_blanked_in_every_spelling(spelling: str) -> None:
    redactor = Redactor()
    redactor.learn(NASTY)
    assert redactor.clean(f"before {spelling} after") == "before [secret] after"


def test_of_two_secrets_with_one_beginning_no_tail_is_left() -> None:
    redactor = Redactor()
    for value in ("prefix", "prefix-and-more"):
        redactor.learn(value)
    assert redactor.clean("prefix-and-more prefix") == "[secret] [secret]"


def test_a_very_short_secret_is_not_blanked_out_of_every_text() -> None:
    redactor = Redactor()
    redactor.learn("abc")
    assert redactor.clean("abcdef") == "abcdef"


def test_a_sample_is_short_and_can_be_stored() -> None:
    redactor = Redactor()
    sample = redactor.sample(b"\x00\xff" + "作".encode() * 5000)
    assert len(sample) == 1024
    assert "\x00" not in sample


@pytest.mark.parametrize("offset", range(1010, 1026))
def test_a_secret_at_the_cut_of_a_sample_is_not_left_in_part(offset: int) -> None:
    redactor = Redactor()
    redactor.learn("s3cr3t-v4lue")
    sample = redactor.sample(b"x" * offset + b"s3cr3t-v4lue" + b"y" * 100)
    assert "s3c" not in sample

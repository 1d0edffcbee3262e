"""A private SSH server on loopback, and an ``ssh`` that knows its keys."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from servers.processes import find_program, free_port, running

__all__ = ["SshServer", "private_ssh"]


@dataclass(frozen=True)
class SshServer:
    """A running server; ``path`` is the folder to put first on PATH."""

    place: str
    path: Path
    log: Path


@contextmanager
def private_ssh(folder: Path) -> Iterator[SshServer]:
    """Start an SSH server that takes one key and forwards connections."""
    sshd, ssh = find_program("sshd", "/usr/sbin"), shutil.which("ssh")
    if sshd is None or ssh is None:
        raise RuntimeError("sshd or ssh is not installed; on Debian: openssh-server")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    for name in ("host", "user", "stranger"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(words, check=True)
    port, user = free_port(), getpass.getuser()
    shutil.copy(folder / "user.pub", folder / "authorized")
    host_key = (folder / "host.pub").read_text()
    (folder / "known").write_text(f"[127.0.0.1]:{port} {host_key}")
    (folder / "sshd.conf").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\n"
        f"AuthorizedKeysFile {folder}/authorized\nStrictModes no\nUsePAM no\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n"
        "AllowTcpForwarding yes\nAllowStreamLocalForwarding yes\n"
    )
    (folder / "ssh.conf").write_text(
        f"IdentityFile {folder}/user\nIdentitiesOnly yes\nUserKnownHostsFile {folder}/known\n"
        "StrictHostKeyChecking yes\n"
    )
    tools = folder / "bin"
    tools.mkdir()
    (tools / "ssh").write_text(f'#!/bin/sh\nexec {ssh} -F {folder}/ssh.conf "$@"\n')
    (tools / "ssh").chmod(0o755)
    command = [sshd, "-D", "-e", "-f", folder / "sshd.conf"]

    def is_ready() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    with running(command, user, folder / "log", is_ready):
        yield SshServer(f"{user}@127.0.0.1:{port}", tools, folder / "log")

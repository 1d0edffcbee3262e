"""The one border to the driver: connections as libpq makes them, and its errors as sentences."""

from __future__ import annotations

import re
import selectors
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from muniment.databases.passwords import ask_password, known_password
from muniment.errors import DatabaseError, MissingDriver, UsageError
from muniment.kernels import fetching_kernel

try:
    import psycopg
    from psycopg import pq
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
    from psycopg.rows import dict_row
except ImportError as error:
    raise MissingDriver("PostgreSQL", "postgresql") from error

from muniment.databases.postgresql.libpq import put_copy_data

__all__ = [
    "OLDEST", "Connection", "Refused", "connect", "connection_options", "copy_in", "copy_out",
    "execute", "is_missing_database", "quote", "quote_text", "reason", "rows", "shown_place",
    "translated",
]  # fmt: skip

Connection = psycopg.Connection[dict[str, Any]]
OLDEST = 130000

# Everything that could change how values or definitions are spelt.
_SETTINGS = {
    "client_encoding": "UTF8",
    "datestyle": "ISO, YMD",
    "intervalstyle": "iso_8601",
    "timezone": "UTC",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "xmloption": "content",
    "standard_conforming_strings": "on",
    "row_security": "off",  # rows that a policy would hide are an error, not a silent loss
    "synchronize_seqscans": "off",
    "jit": "off",
}
# One transaction lasts as long as the work; only later versions know all of these limits.
_UNLIMITED = """
SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN
    ('idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout')
"""
_PATIENCE = "60s"  # for locks, unless the URL says otherwise
_CHUNK = 1 << 14
_TURN = 0.1  # seconds


class Refused(DatabaseError):
    """The server refused a statement; ``state`` is its SQLSTATE, ``message`` its own first line."""

    def __init__(self, text: str, state: str = "", message: str = "") -> None:
        self.state, self.message = state, message
        super().__init__(text)

    def __reduce__(self) -> tuple[type[Refused], tuple[str, str, str]]:
        return Refused, (str(self), self.state, self.message)


def connection_options(url: str) -> dict[str, Any]:
    """Return the parameters that a URL gives to libpq, with the password from the environment."""
    try:
        options = dict(conninfo_to_dict(url))
    except psycopg.Error as error:
        raise UsageError(
            f"the database URL cannot be read: {reason(error)}; write postgresql://USER@HOST/DB"
        ) from error
    options.setdefault("connect_timeout", "15")
    options.setdefault("fallback_application_name", "muniment")
    password = known_password()
    if password and "password" not in options:
        options["password"] = password
    return options


def shown_place(options: Mapping[str, Any]) -> str:
    """Return where a connection leads, for messages."""
    if "service" in options:
        return f"the service {options['service']}"
    host, port = options.get("host") or "localhost", options.get("port")
    where = f"{host}, port {port}" if port else str(host)
    return f"{options['dbname']} on {where}" if options.get("dbname") else str(where)


def connect(options: dict[str, Any], settings: Mapping[str, str] | None = None) -> Connection:
    """Open a connection on which values and definitions are spelt in one way only.

    A password that was asked for is put into ``options``, so that nobody is asked twice.
    """
    place = shown_place(options)
    try:
        connection = _open(options)
    except psycopg.OperationalError as error:
        if not re.search("no password supplied|password authentication failed", str(error)):
            raise _unreachable(place, error) from error
        password = None if "password" in options else ask_password(place)
        if password is None:
            raise _unreachable(place, error) from error
        options["password"] = password
        try:
            connection = _open(options)
        except psycopg.OperationalError as again:
            raise _unreachable(place, again) from again
    try:
        _prepare(connection, settings or {})
    except BaseException:
        connection.close()
        raise
    return connection


def _open(options: Mapping[str, Any]) -> Connection:
    return psycopg.connect(
        make_conninfo(**options), autocommit=True, row_factory=dict_row, prepare_threshold=None
    )


def _prepare(connection: Connection, settings: Mapping[str, str]) -> None:
    connection.pgconn.nonblocking = 0
    version = connection.info.server_version
    if version < OLDEST:
        raise DatabaseError(
            f"this is PostgreSQL {version // 10000}; Muniment knows PostgreSQL 13 and later"
        )
    waits = rows(connection, "SELECT setting FROM pg_settings WHERE name = 'lock_timeout'")
    patience = {} if waits and waits[0]["setting"] != "0" else {"lock_timeout": _PATIENCE}
    for name, value in (_SETTINGS | patience | dict(settings)).items():
        execute(connection, f"SELECT set_config({quote_text(name)}, {quote_text(value)}, false)")
    execute(connection, _UNLIMITED)


# What libpq says, and what to tell the user instead.
_REFUSALS = (
    ("password authentication failed", "the password for {place} is wrong; give it in the URL, in "
     "MUNIMENT_PASSWORD or in ~/.pgpass"),
    ("no password supplied", "{place} wants a password; give it in the URL, in MUNIMENT_PASSWORD "
     "or in ~/.pgpass"),
    ("Connection refused", "nobody answers at {place}; is the server running, and the port right?"),
    ("No such file or directory", "there is no server socket for {place}; is the server running, "
     "and the folder right?"),
    ("failed to resolve host", "the host of {place} is not known; check its name"),
    ("could not translate host name", "the host of {place} is not known; check its name"),
    ("timeout expired", "{place} did not answer in time; check the host, the port and firewalls"),
    ("no pg_hba.conf entry", "the server does not let this user in from here ({detail}); ask its "
     "administrator for a line in pg_hba.conf"),
    ("too many", "{place} has no connection left; try again later"),
    ("is starting up", "{place} is starting up; try again in a moment"),
    ("alert unknown ca", "the server at {place} does not trust the certificate in sslcert; use one "
     "that its own authority has signed"),
    ("requires a valid client certificate", "{place} wants a certificate; name yours with "
     "sslcert=FILE and sslkey=FILE in the URL"),
    ("certificate", "the certificate for {place} cannot be trusted ({detail}); name its authority "
     "with sslrootcert=FILE in the URL"),
    ("does not support SSL", "{place} does not encrypt connections, and sslmode asks for it"),
)  # fmt: skip


def is_missing_database(error: BaseException) -> bool:
    """Whether a connection failed only because its database does not exist."""
    text = str(error.__cause__ or error)
    return re.search('database ".*" does not exist', text) is not None


def _unreachable(place: str, error: psycopg.Error) -> DatabaseError:
    text = str(error)
    detail = reason(error).rpartition("failed: ")[2].removeprefix("FATAL:").strip()
    for words, sentence in _REFUSALS:
        if words in text:
            return DatabaseError(sentence.format(place=place, detail=detail))
    return DatabaseError(f"{place} cannot be opened: {detail}; check the URL")


def reason(error: BaseException) -> str:
    """Return the first line of what the server or the driver says."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return re.sub(r"^(ERROR|FATAL|PANIC):\s+", "", lines[0])


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Turn the driver's errors into ours; ``doing`` is what was refused, for the sentence."""
    try:
        yield
    except psycopg.Error as error:
        raise sentence(doing, error) from error


_ADVICE = {
    "42501": "ask for the right, or leave it out",
    "55P03": "another session holds a lock on it; try again when that has ended",
    "40P01": "another session got in the way; try again",
    "57014": "it took longer than the timeout allows; raise the timeout, or leave it out",
    "53100": "the server's disk is full",
    "54000": "a limit of PostgreSQL is exceeded",
    "22P05": "the text has characters that Unicode does not know",
    "22021": "the text is not valid in the database's encoding",
}
_GONE = {"57P01", "57P02", "57P03", "08006", "08003", "08000"}


def sentence(doing: str, error: psycopg.Error) -> Refused:
    """Return our error for one of the driver's."""
    state = error.sqlstate or ""
    if "conflict with recovery" in str(error):
        return Refused(
            f"PostgreSQL stopped {doing}: the standby had to apply changes of its primary to rows "
            "that were still needed. Set hot_standby_feedback=on or a longer "
            "max_standby_streaming_delay on the standby, or read from the primary",
            state,
            reason(error),
        )
    gone = isinstance(error, psycopg.OperationalError) and not state
    if gone or state in _GONE:
        return Refused(
            f"the connection to PostgreSQL was lost during {doing}: {reason(error)}. "
            "Start again when the server is back",
            state,
            reason(error),
        )
    detail = (error.diag.message_detail or "").partition("\n")[0]
    said = f"{reason(error)} ({detail.rstrip('.')})" if detail else reason(error)
    if state == "42501" and "row-level security" in said:
        advice = "use a user with BYPASSRLS, or leave the table out"
    else:
        advice = _ADVICE.get(state, "")
    text = f"PostgreSQL refused {doing}: {said.rstrip('.')}"
    return Refused(f"{text}; {advice}" if advice else text, state, said)


def rows(connection: Connection, sql: str, *parameters: object) -> list[dict[str, Any]]:
    """Return the rows of a small query, by column name."""
    with translated("a query"):
        found = connection.execute(sql.encode(), parameters or None)
        return found.fetchall()


def execute(connection: Connection, sql: str, doing: str = "a statement") -> None:
    """Run one statement; a text with two is refused."""
    with translated(doing):
        # Parameters, even none, make the server take a single statement only.
        result = connection.pgconn.exec_params(sql.encode(), [])
        if result.status == pq.ExecStatus.FATAL_ERROR:
            raise _error(connection, result)


def _error(connection: Connection, result: Any) -> psycopg.Error:
    if connection.pgconn.status == pq.ConnStatus.BAD:
        return psycopg.OperationalError(result.error_message.decode("utf-8", "replace"))
    return psycopg.errors.error_from_result(result, encoding="utf-8")


def copy_out(connection: Connection, sql: str, doing: str) -> Generator[bytes, None, None]:
    """Yield the rows of a COPY TO STDOUT, some whole rows at a time."""
    pgconn = connection.pgconn
    fetch = fetching_kernel() or _fetch
    with translated(doing):
        finished = False
        try:
            _await_rows(connection, sql)
            rest = yield from fetch(pgconn)
            finished = True
            _finish(connection)
            if rest:
                yield rest
        finally:
            if not finished and pgconn.transaction_status == pq.TransactionStatus.ACTIVE:
                _abandon(pgconn)


def _await_rows(connection: Connection, sql: str) -> None:
    """Begin a COPY TO STDOUT; the server says nothing before it has several rows."""
    pgconn = connection.pgconn
    pgconn.send_query(sql.encode())
    with selectors.DefaultSelector() as selector, suppress(psycopg.OperationalError):
        selector.register(pgconn.socket, selectors.EVENT_READ)
        while pgconn.is_busy():
            selector.select(_TURN)  # which Ctrl-C ends
            pgconn.consume_input()
    result = pgconn.get_result()
    assert result is not None
    if result.status != pq.ExecStatus.COPY_OUT:
        while pgconn.get_result() is not None:
            pass
        raise _error(connection, result)


def _fetch(pgconn: Any) -> Generator[bytes, None, bytes]:
    """Yield whole rows as they come, and return the last ones."""
    held: list[Any] = []
    size = 0
    while True:
        length, row = pgconn.get_copy_data(0)
        if length < 0:
            return b"".join(held)
        held.append(row)
        size += length
        if size >= _CHUNK:
            yield b"".join(held)
            held, size = [], 0


def _finish(connection: Connection) -> int:
    """Take the results that follow the data; return the number of rows they speak of."""
    taken = 0
    while (result := connection.pgconn.get_result()) is not None:
        if result.status == pq.ExecStatus.FATAL_ERROR:
            raise _error(connection, result)
        taken = result.command_tuples or 0
    return taken


def _abandon(pgconn: Any) -> None:
    """End a COPY whose reader went away, so that the connection can be used again."""
    with suppress(psycopg.Error):
        pgconn.get_cancel().cancel()
        while (result := pgconn.get_result()) is not None:
            while result.status == pq.ExecStatus.COPY_OUT and pgconn.get_copy_data(0)[0] >= 0:
                pass


def copy_in(connection: Connection, sql: str, chunks: Iterator[bytes], doing: str) -> int:
    """Run a COPY FROM STDIN with these bytes; return the number of rows it took."""
    pgconn = connection.pgconn
    with translated(doing):
        result = pgconn.exec_(sql.encode())
        if result.status != pq.ExecStatus.COPY_IN:
            raise _error(connection, result)
        try:
            for chunk in chunks:
                put_copy_data(pgconn, chunk)
        except psycopg.Error:
            _finish(connection)  # raises what the server said, if it said anything
            raise
        except BaseException:
            with suppress(psycopg.Error):
                pgconn.put_copy_end(b"the work was stopped")
                _finish(connection)
            raise
        pgconn.put_copy_end()
        return _finish(connection)


def quote(*names: str) -> str:
    """Return names between quotation marks, joined by full stops."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


def quote_text(text: str) -> str:
    """Return a text as a literal.

    >>> quote_text("it's"), quote_text("a\\\\b")
    ("'it''s'", "E'a\\\\\\\\b'")
    """
    doubled = text.replace("'", "''")
    return f"E'{doubled.replace(chr(92), chr(92) * 2)}'" if "\\" in text else f"'{doubled}'"

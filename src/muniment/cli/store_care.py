"""``muniment store verify``, ``reindex`` and ``convert``: looking after what is kept."""

from __future__ import annotations

from pathlib import Path

import click

from muniment.cli.options import examples, json_option
from muniment.cli.terminal import count, safe, size
from muniment.errors import UsageError

__all__ = ["convert", "reindex", "trust", "verify"]

_STORE = click.argument("store", type=click.Path(path_type=Path), metavar="STORE")


@click.command(
    epilog=examples(
        "muniment store verify archive", "muniment store verify archive --sample 1% --rate 20MB"
    )
)
@_STORE
@click.option("--sample", help="Only a random share of the objects, as 1%.")
@click.option("--rate", help="Read no more than this a second, as 50MB.")
@click.option("--restart", is_flag=True, help="Do not go on where an interrupted run stopped.")
@click.option("--sign", "key", type=click.Path(path_type=Path),
              help="Sign the log with this PEM key, not with the store's own.")  # fmt: skip
@json_option
@click.pass_context
def verify(
    ctx: click.Context, store: Path, sample: str | None, rate: str | None, restart: bool,
    key: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Read everything, and prove that it is what was added.

    Digests, signatures, references and whole files are checked. The result becomes a signed record
    in the store. Exit code 0 means good, 1 that something is wrong.
    """
    from muniment.cli.store_objects import byte_count
    from muniment.repository import Store
    from muniment.repository.signatures import Signer
    from muniment.repository.verify import trust as trust_key
    from muniment.repository.verify import verify as check

    with Store(store) as opened:
        signer = Signer(key) if key else None
        if signer:
            trust_key(opened, signer)
        report = check(
            opened,
            sample=_share(sample) if sample else None,
            rate=byte_count(rate) if rate else None,
            restart=restart,
            signer=signer,
        )
    if as_json:
        from muniment.cli.report import print_json

        print_json(
            {
                "store": str(store), "good": report.good, "scope": report.scope,
                "files": report.files, "records": report.records,
                "datastreams": report.datastreams, "signatures": report.signatures,
                "bytes": report.bytes, "log": report.log,
                "problems": [{"where": place, "message": said} for place, said in report.problems],
            }
        )  # fmt: skip
    else:
        for place, words in report.problems:
            click.echo(safe(f"{place}: {words}"))
        facts = f"{count(report.records, 'record')}, {count(report.datastreams, 'datastream')}"
        state = "good" if report.good else count(len(report.problems), "problem")
        click.echo(safe(f"{store}: {state}; {facts}, {size(report.bytes)} read"))
    ctx.exit(0 if report.good else 1)


def _share(text: str) -> float:
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1
    if not 0 < share <= 1:
        raise UsageError(f"{text!r} is not a share; write 1% or 0.01")
    return share


@click.command(epilog=examples("muniment store trust archive certificate.pem"))
@_STORE
@click.argument("certificate", type=click.Path(path_type=Path))
@json_option
def trust(store: Path, certificate: Path, as_json: bool) -> None:
    """Trust the signatures made with a key, by its certificate; imported ones need this."""
    from muniment.repository import Store
    from muniment.repository.verify import trust_certificate

    if not certificate.is_file():
        raise UsageError(f"there is no file {certificate}")
    with Store(store) as opened:
        name = trust_certificate(opened, certificate.read_bytes())
    if as_json:
        from muniment.cli.report import print_json

        print_json({"store": str(store), "sha256": name})
        return
    click.echo(f"{safe(str(store))}: trusts {name}")


@click.command(epilog=examples("muniment store reindex archive"))
@_STORE
@json_option
def reindex(store: Path, as_json: bool) -> None:
    """Make the catalogue and every index again, from the tapes and ARC files alone."""
    from muniment.repository import Store
    from muniment.repository.reindex import reindex as rebuild

    with Store(store) as opened:
        rebuilt = rebuild(opened)
        assert rebuilt is not None
        assert opened.names
    if as_json:
        from muniment.cli.report import print_json

        print_json({"store": str(store), **rebuilt._asdict()})
        return
    facts = [
        count(rebuilt.tapes, "tape"), count(rebuilt.arcs, "ARC file"),
        count(rebuilt.records, "record"), count(rebuilt.datastreams, "datastream"),
    ]  # fmt: skip
    click.echo(safe(f"{store}: {', '.join(facts)}"))


@click.command(epilog=examples("muniment store convert crawl.arc.gz crawl.warc.gz"))
@click.argument("source", type=click.Path(path_type=Path), metavar="IN")
@click.argument("target", type=click.Path(path_type=Path), metavar="OUT")
@json_option
def convert(source: Path, target: Path, as_json: bool) -> None:
    """Convert an ARC file to WARC, or between plain and compressed, by the name of OUT."""
    from muniment.arc.convert import convert_arc
    from muniment.arc.formats import FORMATS
    from muniment.files import new_file
    from muniment.repository.settings import now
    from muniment.tape.write import SOFTWARE

    if not source.is_file():
        raise UsageError(f"there is no file {source}")
    forms = [form for form in FORMATS.values() if target.name.endswith(form.suffix)]
    if not forms:
        raise UsageError(f"{target} ends in none of {', '.join(f'.{name}' for name in FORMATS)}")
    with source.open("rb") as stream, new_file(target) as made:
        done = convert_arc(stream, source.name, made, target.name, forms[-1], now(), SOFTWARE)
    if as_json:
        from muniment.cli.report import print_json

        print_json({"file": str(target), "records": done})
        return
    click.echo(safe(f"{target}: {count(done, 'record')}"))

"""The command `key`: the key that signs requests, and the directory in which sites find it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from crawler.signing.key_directory import PATH, KeyDirectory, key_directory
from crawler.signing.signing_key import make_key, read_key
from farmwatch.commands.options import DEFAULTS, Common
from farmwatch.terminal.messages import message, put
from stream.text.user_errors import Exit, UsageError
from stream.text.whole_files import write_whole
from stream.text.wording import counted, moment, one_line

_NAME = PATH.rpartition("/")[2]


def key(
    file: Annotated[Path, Parameter(help="The key, outside of the folder of the directory.")],
    others: Annotated[
        tuple[Path, ...], Parameter(help="Further keys of the directory: the one before or after this one.")
    ] = (),
    /,
    *,
    new: Annotated[bool, Parameter(negative=(), help="Make the key; FILE does not exist yet.")] = False,
    out: Annotated[Path, Parameter(help="The folder of the directory, as it is on the site.")] = Path(".well-known"),
    common: Common = DEFAULTS,
) -> int:
    """Make the directory in which sites find the key that signs the requests of the crawl; with --new also the key.

    The directory is a file for the site of crawl.signature.agent, or else of crawl.contact, and so are the headers to
    send with it, printed and as a file for nginx. They expire after 90 days: the command without --new makes them anew.
    """
    settings = common.load().config.crawl
    agent = settings.signature_agent
    for private in (file, *others):  # a link too: a web server follows it
        if {out.resolve(), out.absolute()} & {*private.resolve().parents, *private.absolute().parents}:
            raise UsageError(one_line(f"{private} is in {out}, which is served: keep private keys elsewhere"))
    known = [read_key(other) for other in others]
    try:
        first = make_key(file) if new else read_key(file)
    except FileExistsError:
        raise UsageError(one_line(f"{file} exists: leave out --new, or name a new file")) from None
    keys = list({key.id: key for key in (first, *known)}.values())
    if new:
        message(one_line(f"{file}: a new key that only you can read; crawl.signature.key names it"))
    directory = key_directory(keys, agent.removeprefix("https://"), time.time())
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / _NAME, directory.body, force=True)
    write_whole(out / f"{_NAME}.nginx", _for_nginx(directory).encode(), force=True)
    message(
        one_line(
            f"{out / _NAME}: {counted(len(keys), 'key')}; serve it as {agent}{PATH} with these headers, which"
            f" {_NAME}.nginx has for nginx, and make both anew before {moment(1000 * directory.expires)}"
        )
    )
    for name, value in directory.headers:
        put(f"{name}: {value}")
    return Exit.OK


def _for_nginx(directory: KeyDirectory) -> str:
    """A location for a server block of nginx: the file has no ending that tells its type, and is sent as it is."""
    (_, media_type), *headers = directory.headers
    sent = "".join(f"    add_header {name} '{value}' always;\n" for name, value in headers)
    return f"location = {PATH} {{\n    types {{ }}\n    default_type {media_type};\n    gzip off;\n{sent}}}\n"

"""Makes the man pages from the public headers.

Section 3 gets a page for each function, or for a few that share one comment. Section 7 gets the
overview: csrc/man/cwist-jq.7.in, with the lists that the headers know.

A comment before a function is prose, and then fields, each on a line of its own:

    Returns: what comes back, unless that is nothing or a cwist_error_t
    Errors: IO (a note), DENIED          or: as for cwist_job_queue_ack()
    Threads: where the function differs from its header

    python3 csrc/tools/gen_man.py FOLDER        writes FOLDER/man3 and FOLDER/man7
"""

import re
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import gen_cdef

ROOT = Path(__file__).resolve().parents[2]
OVERVIEW = ROOT / "csrc" / "man" / "cwist-jq.7.in"
FIELDS = ("Returns", "Errors", "Threads")

_REGION = re.compile(re.escape(gen_cdef.BEGIN) + "(.*?)" + re.escape(gen_cdef.END), re.DOTALL)
_COMMENT = re.compile(r"/\*(.*?)\*/", re.DOTALL)
_FUNCTION = re.compile(r"CWIST_API\s+([^;(]*?[ *])(\w+)\(([^;]*)\);")
_STRUCT = re.compile(r"(?:/\*((?:(?!\*/).)*)\*/\n)?typedef struct \w+ \{(.*?)\} (\w+);", re.DOTALL)
_MEMBER = re.compile(
    r"^ *([^/;]+?[ *])(\w+(?:\[\w+\])?);(?: */\* ((?:(?!\*/)[\s\S])*?) \*/)?", re.MULTILINE
)
_CALLBACK = re.compile(r"/\*((?:(?!\*/).)*)\*/\ntypedef \w+ \(\*(\w+)\)\((.*?)\);", re.DOTALL)
_WORD = re.compile(r"(\(?)(.*?)((?:\(\))?)([).,:;]*)")
_CODE = re.compile(r"^ *(CWIST_\w+) = (-?\d+),?(?: */\* (.*?) \*/)?$", re.MULTILINE)


class ManError(Exception):
    """A header comment that no page can be made from."""


class Function(NamedTuple):
    """A declaration."""

    name: str
    result: str
    parameters: list


class Page(NamedTuple):
    """Functions that share one comment."""

    header: str
    functions: list
    prose: str
    fields: dict


class Headers(NamedTuple):
    """All that the public headers say."""

    pages: list
    structs: dict  # name: (comment, list of (type, member, comment))
    callbacks: dict  # name: (parameters, comment)
    codes: list  # (name, number, meaning)

    def names(self):
        """The names of all functions."""
        return {function.name for page in self.pages for function in page.functions}


# ---- reading ----


def plain(comment):
    """The text of a comment, one string for each paragraph or field."""
    lines = [re.sub(r"^\s*\* ?", "", line).strip() for line in comment.strip().splitlines()]
    parts = [[]]
    for line in lines:
        if not line or line.startswith(tuple(f"{field}: " for field in FIELDS)):
            parts.append([])
        if line:
            parts[-1].append(line)
    return [" ".join(part) for part in parts if part]


def split_fields(comment):
    """The prose of a comment, and its fields."""
    prose, fields = [], {}
    for part in plain(comment):
        name, colon, text = part.partition(": ")
        if colon and name in FIELDS:
            fields[name] = text
        else:
            prose.append(part)
    return "\n\n".join(prose), fields


def parameters_of(text):
    """The parameters of a declaration."""
    words = " ".join(text.split())
    return [] if words == "void" else words.split(", ")


def read_pages(header, text):
    """The pages of one header."""
    head = _COMMENT.search(text)
    defaults = split_fields(head[1])[1]
    if "Threads" not in defaults:
        raise ManError(f"{header}: the comment at the top has no line 'Threads: …'")
    pages = []
    for region in _REGION.findall(text):
        for block in re.split(r"\n\s*\n", region):
            functions = [
                Function(name, result.strip(), parameters_of(parameters))
                for result, name, parameters in _FUNCTION.findall(block)
            ]
            if not functions:
                continue
            comment = _COMMENT.match(block.strip())
            if comment is None:
                raise ManError(f"{header}: {functions[0].name}() has no comment")
            prose, fields = split_fields(comment[1])
            pages.append(Page(header, functions, prose, defaults | fields))
    return pages


def read(include_dir):
    """Reads the headers that a program includes, in the order in which they need each other."""
    headers = Headers([], {}, {}, [])
    for name in gen_cdef.headers(include_dir):
        text = (Path(include_dir) / name).read_text(encoding="utf-8")
        if gen_cdef.BEGIN not in text:
            continue
        headers.pages.extend(read_pages(name, text))
        for comment, members, struct in _STRUCT.findall(text):
            if struct == "cwist_error_t":  # programs read it by functions
                continue
            headers.structs[struct] = (
                split_fields(comment)[0],
                [
                    (kind, member, " ".join(note.split()))
                    for kind, member, note in _MEMBER.findall(members)
                ],
            )
        for comment, callback, parameters in _CALLBACK.findall(text):
            headers.callbacks[callback] = (parameters_of(parameters), split_fields(comment)[0])
        headers.codes.extend(
            code
            for code in _CODE.findall(text)
            if re.match(r"CWIST_(SUCCESS|FAILURE|ERROR_)", code[0])
        )
    return headers


def errors_of(page, headers):
    """The codes that a page names, as pairs of name and note."""
    text = page.fields.get("Errors", "").rstrip(".")
    other = re.fullmatch(r"as for (\w+)\(\)", text)
    if other:
        for candidate in headers.pages:
            if candidate is not page and other[1] in [f.name for f in candidate.functions]:
                return errors_of(candidate, headers)
        raise ManError(f"{page.header}: no other function is called {other[1]}")
    pairs = re.findall(r"(\w+)(?: \((.*?)\))?(?:, |$)", text)
    known = {name for name, _, _ in headers.codes}
    for code, _ in pairs:
        if f"CWIST_ERROR_{code}" not in known:
            raise ManError(f"{page.header}: {page.functions[0].name}(): no code is called {code}")
    return [(f"CWIST_ERROR_{code}", note) for code, note in pairs]


# ---- writing mdoc ----


def escape(text):
    """Text that mdoc takes as it stands."""
    text = text.replace("\\", "\\e")
    return "\\&" + text if text.startswith((".", "'")) else text


def word_parts(word):
    """What opens a word, its middle, the () of a call, and what closes it."""
    return _WORD.fullmatch(word).groups()


def marked(word, names, own):
    """The macro for the middle of a word, or None."""
    called = re.fullmatch(r"(cwist_\w+)\(\)", word)
    if called and called[1] in own:
        return f"Fn {called[1]}"
    if called and called[1] in names:
        return f"Xr {called[1]} 3"
    if re.fullmatch(r"[A-Z][A-Z0-9_]+_[A-Z0-9_]+|NULL|NUL|UINT64_MAX", word):
        return f"Dv {word}"
    if re.fullmatch(r"\*[a-z]\w*|[a-z]+_[a-z_]+", word) and not word.startswith("cwist_"):
        return f"Fa {word}"
    return None


def sentences(words):
    """Lines of text: one sentence in each, as mdoc wants, and none too long."""
    lines = []
    for sentence in re.split(r"(?<=[A-Za-z0-9)][.]) ", " ".join(words)):
        lines += textwrap.wrap(sentence, 78, break_long_words=False, break_on_hyphens=False)
    return [escape(line) for line in lines]


def prose(text, names, own=()):
    """Lines of mdoc for sentences; what has a meaning to readers gets its macro."""
    lines = []
    for number, paragraph in enumerate(text.split("\n\n")):
        if number:
            lines.append(".Pp")
        waiting = []
        for word in paragraph.split():
            opening, middle, calling, closing = word_parts(word)
            macro = marked(middle + calling, names, own)
            if macro is None:
                waiting.append(word)
                continue
            lines += sentences(waiting)
            waiting = []
            before = "Pf ( " if opening else ""
            lines.append(" ".join([f".{before}{macro}", *closing]))
        lines += sentences(waiting)
    return lines


def capital(text):
    """Text that begins a sentence; the name of a function keeps its small letter."""
    return text if "_" in text.partition(" ")[0] else text[0].upper() + text[1:]


def brief(text):
    """The few words after the name: the first sentence, up to its first break."""
    words = re.split(r"[,:;.](?: |$)", text, maxsplit=1)[0].strip()
    return words[0].lower() + words[1:]


def synopsis(page):
    """The declarations."""
    lines = [".Sh SYNOPSIS", f".In {page.header}"]
    for function in page.functions:
        lines += [f".Ft {escape(function.result)}", f".Fo {function.name}"]
        lines += [f'.Fa "{escape(parameter)}"' for parameter in function.parameters]
        lines.append(".Fc")
    return lines


def structs_of(text, headers):
    """The structs with public members in declarations, and those that they lead to."""
    found = []
    for word in re.findall(r"\w+_t\b", text):
        if word in headers.structs and word not in found:
            kinds = " ".join(kind for kind, _, _ in headers.structs[word][1])
            found += [word, *(inner for inner in structs_of(kinds, headers) if inner not in found)]
    return found


def members_of(page, headers, names, own):
    """The members of the structs that the functions take or give, each with what it means."""
    lines = []
    for struct in structs_of(
        " ".join(" ".join([*f.parameters, f.result]) for f in page.functions), headers
    ):
        general, members = headers.structs[struct]
        lines += [".Pp", "The members of", f".Vt {struct}", "are as follows."]
        lines += [*prose(general, names, own), ".Bl -tag -width Ds"]
        for kind, member, comment in members:
            lines.append(f'.It Fa "{kind.strip()} {member}"'.replace("* ", "*"))
            lines += prose(f"{capital(comment)}.", names, own)
            if kind.strip() in headers.callbacks:
                parameters, text = headers.callbacks[kind.strip()]
                lines += ["It is called as", f".Fo {member}"]
                lines += [f'.Fa "{escape(parameter)}"' for parameter in parameters]
                lines += [".Fc .", *prose(text, names, own)]
        lines.append(".El")
    return lines


def returned(page, names):
    """What comes back."""
    results = {function.result for function in page.functions}
    own = [function.name for function in page.functions]
    if "Returns" in page.fields:
        return prose(capital(page.fields["Returns"]), names, own)
    if results == {"void"}:
        return ["None."]
    if results == {"cwist_error_t"}:
        return [
            "An error value for which",
            ".Xr cwist_error_is_ok 3",
            "is true on success.",
            "On failure",
            ".Xr cwist_job_error_code 3",
            "gives its code, and",
            ".Xr cwist_job_last_error 3",
            "the words to it.",
        ]
    raise ManError(f"{page.header}: {own[0]}() has no line 'Returns: …'")


def errors(page, headers, names):
    """The codes to tell apart, each with its meaning."""
    pairs = errors_of(page, headers)
    meanings = {name: meaning for name, _, meaning in headers.codes}
    lines = [".Sh ERRORS"]
    if pairs:
        lines.append(".Bl -tag -width Ds")
        for code, note in pairs:
            lines.append(f".It Dv {code}")
            text = f"{meanings[code]} ({note})." if note else f"{meanings[code]}."
            lines += prose(capital(text), names)
        lines.append(".El")
    if {function.result for function in page.functions} == {"cwist_error_t"}:
        lines += [".Pp"] if pairs else []
        lines += ["The codes that every function may give are listed in", ".Xr cwist-jq 7 ."]
    elif not pairs:
        lines.append("No error value is returned.")
    return lines


def see_also(page, lines):
    """The pages that are mentioned, in the order that mdoc wants."""
    own = {function.name for function in page.functions}
    mentioned = {word[1] for word in map(re.compile(r"\.(?:.* )?Xr (\w+) 3").match, lines) if word}
    also = [f".Xr {name} 3 ," for name in sorted(mentioned - own)]
    return [".Sh SEE ALSO", *also, ".Xr cwist-jq 7"]


def section_3(page, headers, date, version):
    """One page of section 3."""
    names = headers.names()
    own = [function.name for function in page.functions]
    lines = [f".Dd {date}", f".Dt {own[0].upper()} 3", f".Os cwist_jq {version}", ".Sh NAME"]
    lines += [f".Nm {name}" + (" ," if name != own[-1] else "") for name in own]
    lines += [f".Nd {brief(page.prose)}", *synopsis(page), ".Sh DESCRIPTION"]
    lines += [*prose(page.prose, names, own), *members_of(page, headers, names, own)]
    lines += [".Sh RETURN VALUES", *returned(page, names), *errors(page, headers, names)]
    lines += [".Sh THREADS", *prose(capital(page.fields["Threads"]), names, own)]
    lines += see_also(page, lines)
    return "\n".join(lines) + "\n"


def section_7(text, headers, version):
    """The overview, with its lists filled in."""
    names = headers.names()
    functions, codes = [], []
    for page in headers.pages:
        functions += [f".It Xr {function.name} 3" for function in page.functions]
        functions += prose(brief(page.prose), names)
    for name, number, meaning in headers.codes:
        codes += [f".It Dv {name} Pq {number}"]
        codes += prose(f"{capital(meaning)}.", names)
    for mark, lines in (("FUNCTIONS", functions), ("CODES", codes)):
        text = text.replace(f"@{mark}@", "\n".join(lines))
    return text.replace("@VERSION@", version)


def version_of(include_dir):
    """The version of the library."""
    text = (Path(include_dir) / "cwist" / "version.h").read_text(encoding="utf-8")
    return ".".join(re.findall(r"define CWIST_JQ_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text))


def pages(include_dir):
    """All pages: a dictionary of paths and texts."""
    headers = read(include_dir)
    overview = OVERVIEW.read_text(encoding="utf-8")
    version = version_of(include_dir)
    date = re.search(r"^\.Dd (.+)$", overview, re.MULTILINE)[1]
    made = {"man7/cwist-jq.7": section_7(overview, headers, version)}
    for page in headers.pages:
        first, *others = [function.name for function in page.functions]
        made[f"man3/{first}.3"] = section_3(page, headers, date, version)
        for name in others:
            made[f"man3/{name}.3"] = f".so man3/{first}.3\n"
    return made


def main(arguments):
    """Writes the pages; returns the exit code."""
    if len(arguments) != 1:
        sys.exit(__doc__)
    try:
        made = pages(ROOT / "include")
    except (ManError, gen_cdef.HeaderError, OSError) as error:
        sys.stderr.write(f"gen_man: {error}\n")
        return 1
    for name, text in made.items():
        path = Path(arguments[0]) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

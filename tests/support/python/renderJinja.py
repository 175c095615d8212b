# Renders each template of a JSON list on standard input with the real Jinja2, as mini-swe-agent does (StrictUndefined), and prints what came of it.
import json
import sys

sys.path.insert(0, sys.argv[1])
from jinja2 import Environment, StrictUndefined  # noqa: E402

environment = Environment(undefined=StrictUndefined)


def rendered(case):
    try:
        template = environment.from_string(case["template"])
    except Exception as error:
        return {"load": f"{type(error).__name__}: {error}"}
    try:
        return {"ok": template.render(**case["vars"])}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


json.dump([rendered(case) for case in json.load(sys.stdin)], sys.stdout)

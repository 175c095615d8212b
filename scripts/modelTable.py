"""Writes src/model/models.json: context window, longest output, reasoning and its efforts of the models of each maker, from litellm's table (MIT).

For maintainers: pip download --no-deps litellm, unzip it, then
  python3 scripts/modelTable.py litellm/model_prices_and_context_window_backup.json VERSION > src/model/models.json
"""
import json
import sys

# litellm's provider: the prefix that its names carry in the table, which ours do not.
MAKERS = ["openai", "anthropic", "gemini", "deepseek", "mistral", "xai", "groq", "moonshot", "zai", "dashscope"]

# What every model that thinks takes, unless the table says no; and what it takes only where the table says yes.
ALWAYS = ["low", "medium", "high"]
SOMETIMES = ["none", "minimal", "xhigh", "max"]


def efforts(facts):
    """The efforts that a model takes; None where the table says nothing about them."""
    said = {effort: facts.get(f"supports_{effort}_reasoning_effort") for effort in SOMETIMES + ALWAYS}
    if not facts.get("supports_reasoning") or all(answer is None for answer in said.values()):
        return None
    return [e for e in SOMETIMES if said[e] is True] + [e for e in ALWAYS if said[e] is not False]


table = json.load(open(sys.argv[1], encoding="utf-8"))
models = {maker: {} for maker in MAKERS}
for name, facts in table.items():
    maker = facts.get("litellm_provider")
    if maker not in models or facts.get("mode") not in ("chat", "responses") or name.startswith("ft:"):
        continue
    known = {
        "context": facts.get("max_input_tokens") or None,
        "output": facts.get("max_output_tokens") or None,
        "reasoning": True if facts.get("supports_reasoning") else None,
        # Google's levels and Claude's are translated, and their rows say too little.
        "efforts": efforts(facts) if maker == "openai" else None,
        "defaultEffort": facts.get("default_reasoning_effort"),
        "adaptive": True if facts.get("supports_adaptive_thinking") else None,
        "fixedSampling": True if facts.get("supports_sampling_params") is False else None,
        "gone": facts.get("deprecation_date"),
    }
    models[maker][name.removeprefix(f"{maker}/")] = {k: v for k, v in known.items() if v is not None}

print("{")
print(f'  "source": "litellm {sys.argv[2]}, model_prices_and_context_window.json (MIT)",')
for maker in MAKERS:
    print(f'  "{maker}": {{')
    rows = [f"    {json.dumps(name)}: {json.dumps(known)}" for name, known in sorted(models[maker].items())]
    print(",\n".join(rows))
    print("  }" if maker == MAKERS[-1] else "  },")
print("}")

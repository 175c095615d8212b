"""Writes src/model/models.json: context window, longest output and reasoning of the models of each maker, from litellm's table (MIT).

For maintainers: pip download --no-deps litellm, unzip it, then
  python3 scripts/modelTable.py litellm/model_prices_and_context_window_backup.json VERSION > src/model/models.json
"""
import json
import sys

# litellm's provider: the prefix that its names carry in the table, which ours do not.
MAKERS = ["openai", "anthropic", "gemini", "deepseek", "mistral", "xai", "groq", "moonshot", "zai", "dashscope"]

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

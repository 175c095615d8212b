# Makes the Inspect logs beside this file: pip install inspect-ai==0.3.285; python makeLogs.py FOLDER. No model is asked.
import sys
from zipfile import ZIP_DEFLATED, ZipFile

from inspect_ai import Task, eval, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import ChatMessageUser, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, mean, scorer, std
from inspect_ai.solver import generate, solver, system_message

PATCH = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a = 1\n+a = {}\n"


@scorer(metrics=[mean(), std()])
def swe_bench_scorer():
    async def score(state, target):
        if state.sample_id == "made__made-4":
            raise RuntimeError("SWE-bench eval script did not reach the test phase (no start-of-test marker)")
        solved = state.sample_id == "made__made-1" or (state.sample_id == "made__made-2" and state.epoch == 1)
        return Score(value=1.0 if solved else 0.0, explanation="PASS_TO_PASS:\n\n{}", metadata={"model_patch": PATCH.format(state.epoch)})

    return score


@solver
def troubles():
    async def solve(state, generate):
        if state.sample_id == "made__made-3" and state.epoch == 2:
            raise ConnectionError("the sandbox is gone")
        if state.sample_id == "made__made-5":
            for _ in range(9):
                state.messages.append(ChatMessageUser(content="again"))
                await generate(state)
        return state

    return solve


@task
def swe_bench_made():
    samples = [Sample(id=f"made__made-{i}", input=f"repair number {i}", target=PATCH.format(0),
                      metadata={"repo": "made/made", "base_commit": "0" * 40, "patch": PATCH.format(0)}) for i in range(1, 6)]
    return Task(dataset=MemoryDataset(samples), solver=[system_message("You repair."), generate(), troubles()],
                scorer=swe_bench_scorer(), epochs=2, message_limit=8, fail_on_error=False)


def answers():
    while True:
        answer = ModelOutput.from_content("mockllm/model", "I changed `a.py`.")
        answer.usage = ModelUsage(input_tokens=100, output_tokens=20, total_tokens=150, input_tokens_cache_read=30, reasoning_tokens=5, total_cost=0.01)
        yield answer


def without_this_machine(log):
    """Tracebacks name paths, and events repeat all messages: the reader looks at neither."""
    log.eval.task_file = "makeLogs.py"
    for sample in log.samples:
        sample.events, sample.events_data, sample.timelines = [], None, None
        if sample.error:
            sample.error.traceback = sample.error.traceback_ansi = ""
    return log


if __name__ == "__main__":
    folder = sys.argv[1]
    logs = eval(swe_bench_made(), model=get_model("mockllm/model", custom_outputs=answers()), log_dir=f"{folder}/raw", display="none", max_samples=1)
    log = without_this_machine(read_eval_log(logs[0].location))
    for name in ["made.eval", "made.json"]:
        write_eval_log(log, f"{folder}/{name}")
    # Older versions wrote deflate.
    with ZipFile(f"{folder}/made.eval") as zstd, ZipFile(f"{folder}/older.eval", "w", ZIP_DEFLATED) as deflate:
        for name in zstd.namelist():
            deflate.writestr(name, zstd.read(name))

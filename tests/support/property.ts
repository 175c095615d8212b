// fast-check with the same seed in every run: a rare counterexample is looked for on purpose (FC_SEED=…), not met by whoever runs the tests.
import fc from 'fast-check';

fc.configureGlobal({ seed: Number(process.env.FC_SEED ?? 20261121) });

export default fc;

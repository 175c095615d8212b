# Makes tests/suites/harbor/fixtures/harborSteps.json: methods of harbor 0.25.0 itself, run on stand-ins for what they are given.
# python3.12 harborSteps.py UNPACKED_WHEEL OUT.json
import ast, enum, json, random, sys, types
src=open(f'{sys.argv[1]}/harbor/trial/trial.py').read()
ms=open(f'{sys.argv[1]}/harbor/trial/multi_step.py').read()
def method(source, name):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name==name:
            node.decorator_list=[]; node.returns=None
            for a in node.args.args: a.annotation=None
            return ast.unparse(node)
class MultiStepRewardStrategy(str, enum.Enum):
    MEAN='mean'; FINAL='final'
class VerifierResult:
    def __init__(self, rewards=None): self.rewards=rewards
ns={'MultiStepRewardStrategy':MultiStepRewardStrategy,'VerifierResult':VerifierResult}
exec(method(src,'_select_multi_step_reward'),ns); exec(method(src,'_aggregate_step_rewards'),ns); exec(method(ms,'_min_reward_failure'),ns)
class T:
    _aggregate_step_rewards=ns['_aggregate_step_rewards']; _select_multi_step_reward=ns['_select_multi_step_reward']
random.seed(20261123)
def num():
    return random.choice([0.0,1.0,0.5,1/3,0.1,random.random(),random.random(),float(random.randint(0,50)),1e16,-1e16,1e-9])
cases=[]
for _ in range(240):
    n=random.randint(0,6)
    steps=[None if random.random()<0.2 else {k:num() for k in random.sample(['reward','found','style','__proto__'],random.randint(0,3))} for _ in range(n)]
    if random.random()<0.4: steps=[s and {'reward':num()} for s in steps]
    st=random.choice(['mean','final',None])
    t=T()
    t.task=types.SimpleNamespace(config=types.SimpleNamespace(multi_step_reward_strategy=MultiStepRewardStrategy(st) if st else None))
    t.result=types.SimpleNamespace(step_results=[types.SimpleNamespace(verifier_result=None if s is None else VerifierResult(dict(s))) for s in steps])
    r=t._select_multi_step_reward()
    least=random.choice([0.5,1.0,0.0,{'reward':0.5},{'reward':0.2,'found':1.0},{'style':0.1},{}])
    gate=ns['_min_reward_failure'](steps[-1] if steps else None, least)
    cases.append({'strategy':st,'steps':steps,'expected':None if r is None else r.rewards,'least':least,'stops':gate is not None})
def pairs(s): return None if s is None else [[k,v] for k,v in s.items()]
for c in cases:
    c['steps']=[pairs(s) for s in c['steps']]; c['expected']=pairs(c['expected'])
    if c['expected'] is not None: c['expected'].sort()
json.dump({'harbor':'0.25.0','python':sys.version.split()[0],'cases':cases},open(sys.argv[2],'w'),separators=(',',':'))

"""TRL's own GRPOTrainer on stored rollouts: the peer of demo-step.

  trl_step.py JOB.json     {"model", "adapter", "fresh", "bf16", "temperature", "beta", "micro_batch", "config": {r, lora_alpha, target_modules}, "groups": [[
                            {"prompt", "completion", "generated": 0 or 1 by completion token, "reward"}]]}
  answers every line of input with one step: {"seconds", "grad_norm"}

The trainer is used as its users use it: PEFT's LoRA, transformers' model with SDPA attention, a rollout function that hands out the stored tokens in place of
generating (TRL's `rollout_func`, with `env_mask` over the tools' tokens), rewards by a reward function, advantages, reference log-probs, loss and AdamW by TRL. The
learning rate is 0, so that all steps are the same. `seconds` are CPU seconds from on_step_begin to on_step_end of this process, which has one thread.
"""
import json
import os
import sys
import time

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
import torch
import transformers
import trl
from datasets import Dataset
from peft import LoraConfig, PeftModel, set_peft_model_state_dict
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback

answers, sys.stdout = sys.stdout, sys.stderr  # TRL prints


def answer(**fields):
    print(json.dumps(fields), file=answers, flush=True)


class OnRequest(TrainerCallback):
    """One step a line of input."""

    def on_step_begin(self, args, state, control, **_):
        if not sys.stdin.readline():
            os._exit(0)
        self.start = time.process_time()

    def on_step_end(self, args, state, control, **_):
        self.seconds = time.process_time() - self.start

    def on_log(self, args, state, control, logs, **_):
        if "grad_norm" in logs:
            answer(seconds=self.seconds, grad_norm=logs["grad_norm"])


def main(job):
    torch.set_num_threads(1)
    groups = job["groups"]
    prompts = [f"prompt {i}" for i in range(len(groups))]

    def stored(asked, trainer):
        next_of = {prompt: iter(group) for prompt, group in zip(prompts, groups)}
        rows = [next(next_of[prompt]) for prompt in asked]
        return dict(prompt_ids=[r["prompt"] for r in rows], completion_ids=[r["completion"] for r in rows], logprobs=None,
                    env_mask=[r["generated"] for r in rows], stored_reward=[r["reward"] for r in rows])

    dtype = torch.bfloat16 if job["bf16"] else torch.float32
    tokenizer = AutoTokenizer.from_pretrained(job["model"])
    model = AutoModelForCausalLM.from_pretrained(job["model"], dtype=dtype, attn_implementation="sdpa")
    lora = LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.0, **job["config"])
    if not job["fresh"]:
        model, lora = PeftModel.from_pretrained(model, job["adapter"], is_trainable=True), None
    rollouts = sum(len(group) for group in groups)
    trainer = trl.GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        reward_funcs=lambda completions, stored_reward, **_: stored_reward,
        train_dataset=Dataset.from_dict({"prompt": prompts}),
        peft_config=lora,
        rollout_func=stored,
        callbacks=[OnRequest()],
        args=trl.GRPOConfig(
            output_dir=os.path.join(os.path.dirname(sys.argv[1]), "trl"), use_cpu=True, bf16=job["bf16"], seed=0, max_steps=10_000, num_train_epochs=1,
            per_device_train_batch_size=job["micro_batch"], gradient_accumulation_steps=rollouts // job["micro_batch"], num_generations=len(groups[0]),
            loss_type="dapo", beta=job["beta"], epsilon=0.2, temperature=job["temperature"], scale_rewards="group", mask_truncated_completions=False,
            learning_rate=0.0, lr_scheduler_type="constant", adam_beta1=0.9, adam_beta2=0.999, weight_decay=0.0, max_grad_norm=1.0,
            gradient_checkpointing=False, shuffle_dataset=False, report_to=[], save_strategy="no", logging_steps=1, disable_tqdm=True,
            dataloader_pin_memory=False),
    )
    if job["fresh"]:  # PEFT's A is another draw than ours
        set_peft_model_state_dict(trainer.model, load_file(os.path.join(job["adapter"], "adapter_model.safetensors")))
    answer(name=f"TRL {trl.__version__} on PyTorch {torch.__version__}, transformers {transformers.__version__}")
    trainer.train()


with open(sys.argv[1]) as file:
    main(json.load(file))

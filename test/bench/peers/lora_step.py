"""One LoRA training step of a Qwen3-shaped model in PyTorch, as a person would write it for a CPU: the peer of lora-step-* and forward-logprobs.

  lora_step.py DIR     writes a random checkpoint (and a PEFT adapter) into DIR unless it is there, loads it, and answers requests, one JSON line each:
    {"prefix": [P], "completions": [G][C], "weights": [G]}                  the tokens of all steps to come
    {"run": "batched" | "shared", "backward": true | false}                 -> {"seconds", "loss", "grad_norm", "logprobs": [G·C]}

A step is forward and backward over G rollouts that share a prompt of P tokens; loss = mean over completion tokens of -w · log-prob, gradients of LoRA only.
  batched   [G, P+C]: every rollout with its prompt, which is what trainers do
  shared    the prompt once, then all completions, which attend to its keys and values; exact, gradients flow back into the prompt
`seconds` are CPU seconds of this process, which has one thread. The optimiser is left out (ours includes it).
"""
import json
import math
import os
import sys
import time

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, INTERMEDIATE, VOCAB = 576, 30, 9, 3, 64, 1536, 49152
RANK, ALPHA, EPS, THETA = 16, 32, 1e-6, 1e6
LINEARS = {
    "self_attn.q_proj": (HIDDEN, HEADS * HEAD_DIM),
    "self_attn.k_proj": (HIDDEN, KV_HEADS * HEAD_DIM),
    "self_attn.v_proj": (HIDDEN, KV_HEADS * HEAD_DIM),
    "self_attn.o_proj": (HEADS * HEAD_DIM, HIDDEN),
    "mlp.gate_proj": (HIDDEN, INTERMEDIATE),
    "mlp.up_proj": (HIDDEN, INTERMEDIATE),
    "mlp.down_proj": (INTERMEDIATE, HIDDEN),
}
CONFIG = dict(model_type="qwen3", hidden_act="silu", hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=KV_HEADS,
              head_dim=HEAD_DIM, intermediate_size=INTERMEDIATE, vocab_size=VOCAB, max_position_embeddings=4096, rms_norm_eps=EPS, rope_theta=THETA,
              tie_word_embeddings=True)
ADAPTER = dict(peft_type="LORA", task_type="CAUSAL_LM", r=RANK, lora_alpha=ALPHA, lora_dropout=0.0, bias="none", base_model_name_or_path=None,
               target_modules=[name.split(".")[1] for name in LINEARS])


def make_checkpoint(directory):
    """Both sides read the same files, so that their log-probs can be compared. B is not 0: every product has something to do."""
    torch.manual_seed(0)
    base, lora = {"model.embed_tokens.weight": torch.randn(VOCAB, HIDDEN) * 0.02, "model.norm.weight": torch.ones(HIDDEN)}, {}
    for layer in (f"model.layers.{i}" for i in range(LAYERS)):
        for norm, n in (("input_layernorm", HIDDEN), ("post_attention_layernorm", HIDDEN), ("self_attn.q_norm", HEAD_DIM), ("self_attn.k_norm", HEAD_DIM)):
            base[f"{layer}.{norm}.weight"] = torch.ones(n)
        for name, (n_in, n_out) in LINEARS.items():
            base[f"{layer}.{name}.weight"] = torch.randn(n_out, n_in) / math.sqrt(n_in)
            lora[f"base_model.model.{layer}.{name}.lora_A.weight"] = torch.randn(RANK, n_in) / math.sqrt(n_in)
            lora[f"base_model.model.{layer}.{name}.lora_B.weight"] = torch.randn(n_out, RANK) * 0.01
    adapter = os.path.join(directory, "adapter")
    os.makedirs(adapter, exist_ok=True)
    for path, content in ((directory, CONFIG), (adapter, ADAPTER)):
        with open(os.path.join(path, "config.json" if path == directory else "adapter_config.json"), "w") as file:
            json.dump(content, file)
    save_file(lora, os.path.join(adapter, "adapter_model.safetensors"))
    save_file(base, os.path.join(directory, "model.safetensors"))


class LoraLinear(torch.nn.Module):
    def __init__(self, weight, a, b):
        super().__init__()
        self.weight = torch.nn.Parameter(weight, requires_grad=False)
        self.a, self.b = torch.nn.Parameter(a), torch.nn.Parameter(b)

    def forward(self, x):
        return F.linear(x, self.weight) + F.linear(F.linear(x, self.a), self.b) * (ALPHA / RANK)


class Layer(torch.nn.Module):
    def __init__(self, base, lora, name):
        super().__init__()
        for linear in LINEARS:
            factors = (lora[f"base_model.model.{name}.{linear}.lora_{x}.weight"] for x in "AB")
            setattr(self, linear.split(".")[1], LoraLinear(base[f"{name}.{linear}.weight"], *factors))
        self.norms = [base[f"{name}.{norm}.weight"] for norm in ("input_layernorm", "post_attention_layernorm", "self_attn.q_norm", "self_attn.k_norm")]

    def forward(self, x, rope, attend):  # x [B, T, HIDDEN]
        b, t, _ = x.shape
        before, after, q_norm, k_norm = self.norms
        h = F.rms_norm(x, (HIDDEN,), before, EPS)
        q = rotate(F.rms_norm(self.q_proj(h).view(b, t, HEADS, HEAD_DIM), (HEAD_DIM,), q_norm, EPS).transpose(1, 2), *rope)
        k = rotate(F.rms_norm(self.k_proj(h).view(b, t, KV_HEADS, HEAD_DIM), (HEAD_DIM,), k_norm, EPS).transpose(1, 2), *rope)
        v = self.v_proj(h).view(b, t, KV_HEADS, HEAD_DIM).transpose(1, 2)
        x = x + self.o_proj(attend(q, k, v).transpose(1, 2).reshape(b, t, HEADS * HEAD_DIM))
        h = F.rms_norm(x, (HIDDEN,), after, EPS)
        return x + self.down_proj(F.silu(self.gate_proj(h)) * self.up_proj(h))


def rotate(x, cos, sin):  # x [B, heads, T, HEAD_DIM], cos and sin [T, HEAD_DIM]
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


def rope_table(position):
    angle = position[:, None].float() * THETA ** (-torch.arange(0, HEAD_DIM, 2).float() / HEAD_DIM)
    return torch.cat((angle, angle), -1).cos(), torch.cat((angle, angle), -1).sin()


def causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


class Model(torch.nn.Module):
    def __init__(self, base, lora):
        super().__init__()
        self.embedding, self.norm = base["model.embed_tokens.weight"], base["model.norm.weight"]
        self.layers = torch.nn.ModuleList(Layer(base, lora, f"model.layers.{i}") for i in range(LAYERS))

    def logprobs(self, prefix, completions, layout):
        """prefix [P], completions [G, C] -> log-prob of every completion token, [G·C]."""
        g, c = completions.shape
        p = len(prefix)
        if layout == "batched":
            x, attend = self.embedding[torch.cat((prefix.expand(g, p), completions), 1)], causal
            position = torch.arange(p + c)
        else:
            x = self.embedding[torch.cat((prefix, completions.flatten()))][None]
            position = torch.cat((torch.arange(p), torch.arange(p, p + c).repeat(g)))
            attend = shared_attention(p, g, c)
        rope = rope_table(position)
        for layer in self.layers:
            x = layer(x, rope, attend)
        if layout == "batched":
            x = x[:, p - 1 : -1]
        else:
            own = x[0, p:].view(g, c, HIDDEN)
            x = torch.cat((x[:, p - 1 : p].expand(g, 1, HIDDEN), own[:, :-1]), 1)
        logits = F.linear(F.rms_norm(x, (HIDDEN,), self.norm, EPS), self.embedding)
        return -F.cross_entropy(logits.flatten(0, 1), completions.flatten(), reduction="none")


def shared_attention(p, g, c):
    """Attention over P prompt rows and G·C rows of completions that see the prompt and the rows of their own that stand before."""
    mask = torch.full((c, c), float("-inf")).triu(1)
    repeat = HEADS // KV_HEADS

    def attend(q, k, v):  # [1, heads, P+G·C, HEAD_DIM]
        prompt = causal(q[:, :, :p], k[:, :, :p], v[:, :, :p])
        # the query heads of a key head are rows of one product: [KV_HEADS, repeat·G·C, P], and for own rows [KV_HEADS, G, repeat·C, C]
        q = q[0, :, p:].reshape(KV_HEADS, repeat, g, c, HEAD_DIM) * HEAD_DIM**-0.5
        k0, v0, k1, v1 = k[0, :, :p], v[0, :, :p], *(x[0, :, p:].reshape(KV_HEADS, g, c, HEAD_DIM) for x in (k, v))
        to_prompt = (q.flatten(1, 3) @ k0.transpose(-1, -2)).view(KV_HEADS, repeat, g, c, p)
        own = q.transpose(1, 2).reshape(KV_HEADS, g, repeat * c, HEAD_DIM) @ k1.transpose(-1, -2)
        own = own.view(KV_HEADS, g, repeat, c, c).transpose(1, 2) + mask
        w0, w1 = torch.cat((to_prompt, own), -1).softmax(-1).split((p, c), -1)
        out = (w0.reshape(KV_HEADS, repeat * g * c, p) @ v0).view(KV_HEADS, repeat, g, c, HEAD_DIM)
        out = out + (w1.transpose(1, 2).reshape(KV_HEADS, g, repeat * c, c) @ v1).view(KV_HEADS, g, repeat, c, HEAD_DIM).transpose(1, 2)
        return torch.cat((prompt, out.reshape(1, HEADS, g * c, HEAD_DIM)), 2)

    return attend


def main(directory):
    torch.set_num_threads(1)
    if not os.path.exists(os.path.join(directory, "model.safetensors")):
        make_checkpoint(directory)
    model = Model(load_file(os.path.join(directory, "model.safetensors")), load_file(os.path.join(directory, "adapter", "adapter_model.safetensors")))
    factors = [p for p in model.parameters() if p.requires_grad]
    print(json.dumps(dict(name=f"PyTorch {torch.__version__}")), flush=True)

    for line in sys.stdin:
        request = json.loads(line)
        if "prefix" in request:
            prefix, completions = torch.tensor(request["prefix"]), torch.tensor(request["completions"])
            weights = torch.tensor(request["weights"])[:, None].expand(completions.shape).flatten()
            print("{}", flush=True)
            continue
        for p in factors:
            p.grad = None
        start = time.process_time()
        with torch.set_grad_enabled(request["backward"]):
            logprobs = model.logprobs(prefix, completions, request["run"])
            loss = -(weights * logprobs).mean()
            if request["backward"]:
                loss.backward()
        seconds = time.process_time() - start
        norm = torch.cat([p.grad.flatten() for p in factors]).norm().item() if request["backward"] else None
        print(json.dumps(dict(seconds=seconds, loss=loss.item(), grad_norm=norm, logprobs=logprobs.tolist())), flush=True)


main(sys.argv[1])

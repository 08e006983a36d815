"""make-gguf.py CHECKPOINT OUT.gguf: a small Qwen3 checkpoint (tied embeddings, byte-level BPE) as a GGUF file for llama.cpp.

Weights become float32. Needs gguf and numpy.
"""
import json, os, sys
import numpy as np
import gguf


def read_safetensors(path):
    with open(path, "rb") as f:
        size = int.from_bytes(f.read(8), "little")
        header = json.loads(f.read(size))
        data = f.read()
    out = {}
    for name, t in header.items():
        if name == "__metadata__":
            continue
        begin, end = t["data_offsets"]
        raw = data[begin:end]
        if t["dtype"] == "BF16":  # the upper half of a float32
            values = (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
        elif t["dtype"] == "F32":
            values = np.frombuffer(raw, np.float32)
        else:
            sys.exit(f"{name}: dtype {t['dtype']} is not known here")
        out[name] = values.reshape(t["shape"])
    return out


BLOCK = {
    "input_layernorm.weight": "attn_norm.weight",
    "self_attn.q_proj.weight": "attn_q.weight",
    "self_attn.k_proj.weight": "attn_k.weight",
    "self_attn.v_proj.weight": "attn_v.weight",
    "self_attn.o_proj.weight": "attn_output.weight",
    "self_attn.q_norm.weight": "attn_q_norm.weight",
    "self_attn.k_norm.weight": "attn_k_norm.weight",
    "post_attention_layernorm.weight": "ffn_norm.weight",
    "mlp.gate_proj.weight": "ffn_gate.weight",
    "mlp.up_proj.weight": "ffn_up.weight",
    "mlp.down_proj.weight": "ffn_down.weight",
}
TOP = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}


def tensor_name(name):
    if name in TOP:
        return TOP[name]
    _, _, layer, rest = name.split(".", 3)
    return f"blk.{layer}.{BLOCK[rest]}"


def main(source, out):
    read = lambda name: json.load(open(os.path.join(source, name), encoding="utf-8"))
    config, tokenizer = read("config.json"), read("tokenizer.json")
    w = gguf.GGUFWriter(out, "qwen3")
    w.add_context_length(config["max_position_embeddings"])
    w.add_embedding_length(config["hidden_size"])
    w.add_block_count(config["num_hidden_layers"])
    w.add_feed_forward_length(config["intermediate_size"])
    w.add_head_count(config["num_attention_heads"])
    w.add_head_count_kv(config["num_key_value_heads"])
    w.add_key_length(config["head_dim"])
    w.add_value_length(config["head_dim"])
    w.add_layer_norm_rms_eps(config["rms_norm_eps"])
    w.add_rope_freq_base(config["rope_theta"])
    w.add_file_type(gguf.LlamaFileType.ALL_F32)

    tokens = dict(tokenizer["model"]["vocab"])
    kinds = {}
    for a in tokenizer["added_tokens"]:
        tokens[a["content"]] = a["id"]
        kinds[a["id"]] = gguf.TokenType.CONTROL if a["special"] else gguf.TokenType.USER_DEFINED
    by_id = sorted((i, t) for t, i in tokens.items())
    assert [i for i, _ in by_id] == list(range(config["vocab_size"])), "ids with gaps"
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("qwen2")
    w.add_token_list([t for _, t in by_id])
    w.add_token_types([kinds.get(i, gguf.TokenType.NORMAL) for i, _ in by_id])
    w.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in tokenizer["model"]["merges"]])
    w.add_bos_token_id(config["bos_token_id"])
    w.add_eos_token_id(config["eos_token_id"])
    w.add_add_bos_token(False)
    w.add_chat_template(open(os.path.join(source, "chat_template.jinja"), encoding="utf-8").read())

    for name, values in read_safetensors(os.path.join(source, "model.safetensors")).items():
        w.add_tensor(tensor_name(name), np.ascontiguousarray(values, np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


main(*sys.argv[1:3])

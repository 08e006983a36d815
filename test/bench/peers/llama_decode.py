"""Greedy decoding with llama.cpp, through its C API: the peer of decode-*.

  llama_decode.py FILE.gguf     answers requests, one JSON line each:
    {"prompts": [B][P], "tokens": N}     -> {"seconds", "ids": [B][N + 1]}

All B prompts are filled in and give their first token before the clock starts; N batches of B tokens follow. `seconds` are CPU seconds of this process, which has
one thread. Keys and values are kept in f16, which is llama.cpp's default; ours keeps them in f32.
"""
import ctypes
import json
import sys
import time

import llama_cpp as llama
import numpy as np

CONTEXT = 256  # positions a sequence


def load(path, sequences):
    model_params = llama.llama_model_default_params()
    model_params.n_gpu_layers = 0
    model = llama.llama_model_load_from_file(path.encode(), model_params)
    if not model:
        sys.exit(f"{path} does not load")
    params = llama.llama_context_default_params()
    params.n_ctx = CONTEXT * sequences
    params.n_seq_max = sequences
    params.n_batch = params.n_ubatch = CONTEXT * sequences
    params.n_threads = params.n_threads_batch = 1
    params.no_perf = True
    params.kv_unified = False
    context = llama.llama_init_from_model(model, params)
    if not context:
        sys.exit("no context")
    return model, context


def decode(context, batch, vocab, rows):
    """rows: (token, position, sequence, wanted). Greedy ids of the wanted ones."""
    batch.n_tokens = len(rows)
    wanted = []
    for i, (token, position, sequence, want) in enumerate(rows):
        batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, position, 1, want
        batch.seq_id[i][0] = sequence
        if want:
            wanted.append(i)
    status = llama.llama_decode(context, batch)
    if status != 0:
        sys.exit(f"llama_decode: {status}")
    return [int(np.argmax(np.ctypeslib.as_array(llama.llama_get_logits_ith(context, i), (vocab,)))) for i in wanted]


def run(context, batch, vocab, prompts, tokens):
    llama.llama_memory_clear(llama.llama_get_memory(context), True)
    fill = [(id, p, s, p == len(prompt) - 1) for s, prompt in enumerate(prompts) for p, id in enumerate(prompt)]
    ids = [[id] for id in decode(context, batch, vocab, fill)]
    start = time.process_time()
    for n in range(tokens):
        step = [(own[-1], len(prompts[s]) + n, s, True) for s, own in enumerate(ids)]
        for own, id in zip(ids, decode(context, batch, vocab, step)):
            own.append(id)
    return dict(seconds=time.process_time() - start, ids=ids)


def main(path):
    quiet = llama.llama_log_callback(lambda level, text, data: None)
    llama.llama_log_set(quiet, ctypes.c_void_p(0))
    llama.llama_backend_init()
    sequences = json.loads(sys.argv[2])
    model, context = load(path, sequences)
    vocab = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))
    batch = llama.llama_batch_init(CONTEXT * sequences, 0, 1)
    print(json.dumps(dict(name=f"llama.cpp (llama-cpp-python {llama.__version__})")), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(run(context, batch, vocab, request["prompts"], request["tokens"])), flush=True)


main(sys.argv[1])

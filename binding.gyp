# The native engine: cg_core (all that is not a backend, without a Node header), cg_reference (the reference backend), cg.node around them; cg-leash, which
# holds the children of the commands (Linux); for tests two programs, native-test and native-bench, and a disk that fails. Time is spent in the backend's
# kernels alone, so the rest is compiled at -O1, a third faster.
# The reference backend is IEEE arithmetic: no -ffast-math, and no contraction, or its instruction sets would differ in bits (native/core/numerics.md).
{
  'target_defaults': {
    'cflags!': ['-fno-omit-frame-pointer'],
    'cflags_cc!': ['-fno-rtti', '-fno-exceptions', '-std=gnu++17', '-std=gnu++20', '-std=gnu++1y'],
    'cflags_cc': ['-std=c++20', '-O1', '-ffp-contract=off', '-fPIC', '-fexceptions', '-Wall', '-Wextra'],
    'include_dirs': ['native'],
    'xcode_settings': {
      'GCC_ENABLE_CPP_EXCEPTIONS': 'YES',
      'GCC_ENABLE_CPP_RTTI': 'YES',
      'CLANG_CXX_LANGUAGE_STANDARD': 'c++20',
      'MACOSX_DEPLOYMENT_TARGET': '11.0',
      'OTHER_CPLUSPLUSFLAGS': ['-O3', '-ffp-contract=off']
    }
  },
  'targets': [
    {
      'target_name': 'cg_reference',
      'type': 'static_library',
      'cflags_cc!': ['-O1'],
      'cflags_cc': ['-O3'],
      'sources': [
        'native/reference/attention.cpp',
        'native/reference/attention_backward.cpp',
        'native/reference/head.cpp',
        'native/reference/isa.cpp',
        'native/reference/lora.cpp',
        'native/reference/matmul.cpp',
        'native/reference/memory.cpp',
        'native/reference/norm.cpp',
        'native/reference/optimiser.cpp',
        'native/reference/rope.cpp',
        'native/reference/rows.cpp',
        'native/reference/sample.cpp',
        'native/reference/swiglu.cpp',
        'native/reference/threads.cpp',
        'native/reference/workspace.cpp'
      ]
    },
    {
      'target_name': 'cg_cpu',
      'type': 'static_library',
      'dependencies': ['cg_reference'],
      'cflags_cc!': ['-O1'],
      'cflags_cc': ['-O3'],
      'sources': [
        'native/cpu/attention.cpp',
        'native/cpu/attention_backward.cpp',
        'native/cpu/backend.cpp',
        'native/cpu/bf16_rows.cpp',
        'native/cpu/bf16_way.cpp',
        'native/cpu/gemm.cpp',
        'native/cpu/lora.cpp',
        'native/cpu/lora_gradient.cpp',
        'native/cpu/panels.cpp',
        'native/cpu/products.cpp'
      ]
    },
    {
      'target_name': 'cg_core',
      'type': 'static_library',
      'dependencies': ['cg_cpu', 'cg_reference'],
      'sources': [
        'native/core/adapter.cpp',
        'native/core/adapter_gradient.cpp',
        'native/core/adapter_peft.cpp',
        'native/core/backward.cpp',
        'native/core/build_model.cpp',
        'native/core/checkpoint.cpp',
        'native/core/config.cpp',
        'native/core/files.cpp',
        'native/core/forward.cpp',
        'native/core/json.cpp',
        'native/core/kv_cache.cpp',
        'native/core/loss.cpp',
        'native/core/model.cpp',
        'native/core/optimizer.cpp',
        'native/core/parameter_gradient.cpp',
        'native/core/parameters.cpp',
        'native/core/random_model.cpp',
        'native/core/reduce.cpp',
        'native/core/rope_table.cpp',
        'native/core/safetensors.cpp',
        'native/core/safetensors_values.cpp',
        'native/core/sampler.cpp',
        'native/core/sampler_batch.cpp',
        'native/core/schedule.cpp',
        'native/core/score.cpp',
        'native/core/sequence.cpp',
        'native/core/train_pass.cpp',
        'native/core/trainee.cpp',
        'native/core/trainer.cpp',
        'native/core/trainer_state.cpp',
        'native/core/trie.cpp',
        'native/core/trie_pass.cpp',
        'native/reference_remote/lagging_queue.cpp',
        'native/reference_remote/remote_backend.cpp',
        'native/reference_remote/vault.cpp'
      ]
    },
    {
      'target_name': 'cg',
      'type': 'loadable_module',
      'dependencies': ['cg_core'],
      'include_dirs': ['<!(node -p "require(\'node-addon-api\').include_dir")'],
      'defines': ['NAPI_VERSION=8', 'NAPI_CPP_EXCEPTIONS'],
      'sources': [
        'native/node/adapter_object.cpp',
        'native/node/addon.cpp',
        'native/node/convert.cpp',
        'native/node/functions.cpp',
        'native/node/model_object.cpp',
        'native/node/sampler_object.cpp',
        'native/node/trainer_object.cpp',
        'native/node/weights_object.cpp'
      ]
    },
    {
      'target_name': 'cg-leash',
      'conditions': [
        ['OS=="linux"', {'type': 'executable', 'ldflags': ['-Wl,--as-needed'], 'sources': ['native/leash/leash.cpp']}, {'type': 'none'}]
      ]
    },
    {
      'target_name': 'native-test',
      'type': 'executable',
      'dependencies': ['cg_core'],
      'libraries': ['-pthread'],
      'sources': [
        'native/test/core_structures.cpp',
        'native/test/core_trie.cpp',
        'native/test/cpu_gemm.cpp',
        'native/test/device.cpp',
        'native/test/golden_sampling.cpp',
        'native/test/main.cpp',
        'native/test/numbers.cpp',
        'native/test/op_attention.cpp',
        'native/test/op_elementwise.cpp',
        'native/test/op_head.cpp',
        'native/test/op_linear.cpp',
        'native/test/op_optimiser.cpp',
        'native/test/op_parameters.cpp',
        'native/test/op_rows.cpp',
        'native/test/op_sample.cpp',
        'native/test/tap.cpp'
      ]
    },
    {
      'target_name': 'native-bench',
      'type': 'executable',
      'dependencies': ['cg_core'],
      'libraries': ['-pthread'],
      'cflags_cc!': ['-O1'],
      'cflags_cc': ['-O3'],
      'sources': ['native/test/bench.cpp', 'native/test/peak.cpp']
    },
    {
      # preloaded by tests into a process whose disk is to fail
      'target_name': 'failing-disk',
      'type': 'loadable_module',
      'libraries': ['-ldl'],
      'sources': ['native/test/failing_disk.cpp']
    }
  ]
}

// Work off the main thread, as a promise.
#pragma once

#include <functional>
#include <string>

#include "core/error.h"
#include "napi.h"

namespace cg::node {

/// The JS error of a cg::Error: an Error with a `code`.
inline Napi::Error js_error(Napi::Env env, const std::string& code, const std::string& message) {
  Napi::Error error = Napi::Error::New(env, message);
  error.Set("code", Napi::String::New(env, code));
  return error;
}

/// Runs `body` and maps cg::Error to a JS exception.
template <class F>
auto guarded(Napi::Env env, F&& body) {
  try {
    return body();
  } catch (const cg::Error& error) {
    throw js_error(env, error.code(), error.what());
  } catch (const std::bad_alloc&) {
    throw js_error(env, "E_MEMORY", "out of memory");
  }
}

template <class T>
class Task final : public Napi::AsyncWorker {
 public:
  using Work = std::function<T()>;
  using Convert = std::function<Napi::Value(Napi::Env, T&)>;

  Task(Napi::Env env, Work work, Convert convert)
      : Napi::AsyncWorker(env), deferred_(Napi::Promise::Deferred::New(env)), work_(std::move(work)), convert_(std::move(convert)) {}

  Napi::Promise promise() const { return deferred_.Promise(); }

  void Execute() override {
    try {
      result_ = work_();
    } catch (const cg::Error& error) {
      code_ = error.code();
      SetError(error.what());
    } catch (const std::bad_alloc&) {
      code_ = "E_MEMORY";
      SetError("out of memory");
    } catch (const std::exception& error) {
      code_ = "E_INTERNAL";
      SetError(error.what());
    }
  }

  void OnOK() override {
    const Napi::HandleScope scope(Env());
    try {
      deferred_.Resolve(convert_(Env(), result_));
    } catch (const Napi::Error& error) {
      deferred_.Reject(error.Value());
    }
  }

  void OnError(const Napi::Error& error) override {
    const Napi::HandleScope scope(Env());
    deferred_.Reject(js_error(Env(), code_, error.Message()).Value());
  }

 private:
  Napi::Promise::Deferred deferred_;
  Work work_;
  Convert convert_;
  T result_{};
  std::string code_;
};

/// Queues `work` for a thread of Node's pool; `convert` makes the JS value on the main thread.
template <class T>
Napi::Promise run_task(Napi::Env env, std::function<T()> work, std::function<Napi::Value(Napi::Env, T&)> convert) {
  auto* task = new Task<T>(env, std::move(work), std::move(convert));
  const Napi::Promise promise = task->promise();
  task->Queue();
  return promise;
}

struct Nothing {};

inline Napi::Promise run_task(Napi::Env env, std::function<void()> work) {
  return run_task<Nothing>(
      env,
      [work = std::move(work)] {
        work();
        return Nothing{};
      },
      [](Napi::Env e, Nothing&) { return e.Undefined(); });
}

}  // namespace cg::node

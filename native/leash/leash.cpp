// cg-leash PROGRAM [ARGUMENT]...   runs a program that is not to outlive the process that started it, nor to leave anything behind.
//
// The program gets a process group of its own in a session of its own, so that a terminal's interrupt reaches the commands and not their children. The leash
// waits beside it, and SIGKILL ends the whole group
//   - when the process that started the leash is gone, however it ended (prctl(2), PR_SET_PDEATHSIG), and at a SIGUSR1, which asks for it;
//   - when INT, TERM or HUP, which are passed on, have not ended it within three seconds;
//   - when the program itself has ended: a helper that it forgot does not stay.
// The group's orphans become the leash's children (PR_SET_CHILD_SUBREAPER) and are waited for: when the leash has ended, the group has. A descendant that made
// a session of its own is a daemon and is left alone. If the leash itself is killed, the program dies with it.
//
// CG_LEASH=PID[:KIB] in the environment names the process that starts it (a parent that is already gone sends no signal) and limits the program's address space.
// Ends as the program did, by the same status or signal; 127 if that cannot be started, 125 if the leash cannot hold it.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <initializer_list>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cg {
namespace {

constexpr time_t grace = 3; // seconds
constexpr int cannot_hold = 125;
constexpr int cannot_start = 127;
/// What the parent's death sends us, and what a parent sends that wants everything gone at once.
constexpr int end_at_once = SIGUSR1;

struct Terms {
  pid_t parent = 0;
  /// 0: no limit.
  rlim_t address_space = 0;
};

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "cg-leash: %s: %s\n", what, std::strerror(errno));
  std::exit(cannot_hold);
}

Terms read_terms() {
  const char* text = std::getenv("CG_LEASH");
  char* end = nullptr;
  Terms terms;
  terms.parent = text ? static_cast<pid_t>(std::strtol(text, &end, 10)) : 0;
  if (terms.parent <= 0) {
    std::fprintf(stderr, "cg-leash: CG_LEASH does not name the parent: this program is started by the cg commands\n");
    std::exit(cannot_hold);
  }
  if (*end == ':') terms.address_space = static_cast<rlim_t>(std::strtoull(end + 1, nullptr, 10)) * 1024;
  unsetenv("CG_LEASH");
  return terms;
}

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, end_at_once}) sigaddset(&set, signal);
  return set;
}

/// Dies with `parent` from here on. The signal is tied to the thread that forked us: Node's main thread, which lives as long as its process.
void die_with(pid_t parent, int signal) {
  if (prctl(PR_SET_PDEATHSIG, signal) != 0) give_up("prctl");
  if (getppid() != parent) std::_Exit(cannot_hold); // it was gone before
}

[[noreturn]] void become_program(const Terms& terms, pid_t leash, const sigset_t& mask, char** argv) {
  setpgid(0, 0);
  die_with(leash, SIGKILL);
  if (terms.address_space > 0) {
    const rlimit limit{terms.address_space, terms.address_space};
    setrlimit(RLIMIT_AS, &limit);
  }
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execvp(argv[0], argv);
  std::fprintf(stderr, "%s: %s\n", argv[0], std::strerror(errno));
  std::_Exit(cannot_start);
}

/// The program's pipes are its own: a reader is to see their end when the program closes them.
void let_go_of_pipes() {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return;
  for (int fd = 0; fd <= 2; fd++) dup2(null, fd);
}

/// Reaps orphans that have ended. True when the program has; it is left as it is, so that its number still means its group.
bool has_ended(pid_t program) {
  for (;;) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return errno == ECHILD;
    if (info.si_pid == 0) return false;
    if (info.si_pid == program) return true;
    waitpid(info.si_pid, nullptr, 0);
  }
}

timespec time_left(const timespec& deadline) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  timespec left{deadline.tv_sec - now.tv_sec, deadline.tv_nsec - now.tv_nsec};
  if (left.tv_nsec < 0) {
    left.tv_sec--;
    left.tv_nsec += 1'000'000'000;
  }
  return left.tv_sec < 0 ? timespec{0, 0} : left;
}

/// Passes signals on until the program has ended.
void watch(pid_t program, const sigset_t& signals) {
  timespec deadline{};
  bool overdue_is_set = false;
  while (!has_ended(program)) {
    timespec left{};
    if (overdue_is_set) left = time_left(deadline);
    const int signal = overdue_is_set ? sigtimedwait(&signals, nullptr, &left) : sigwaitinfo(&signals, nullptr);
    if (signal == SIGCHLD || (signal < 0 && errno == EINTR)) continue;
    if (signal < 0 || signal == end_at_once) {
      kill(-program, SIGKILL);
      overdue_is_set = false;
      continue;
    }
    kill(-program, signal);
    if (overdue_is_set) continue;
    overdue_is_set = true;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += grace;
  }
}

/// Ends what is left of the group and gives the program's own wait status.
int sweep(pid_t program) {
  kill(-program, SIGKILL);
  int status = 0;
  waitpid(program, &status, 0);
  while (waitpid(-program, nullptr, 0) > 0) {
  }
  return status;
}

[[noreturn]] void end_like(int status) {
  if (WIFEXITED(status)) std::exit(WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  std::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  raise(signal);
  std::exit(128 + signal);
}

} // namespace
} // namespace cg

int main(int argc, char** argv) {
  using namespace cg;
  if (argc < 2) {
    std::fprintf(stderr, "usage: cg-leash PROGRAM [ARGUMENT]...\n");
    return cannot_hold;
  }
  const Terms terms = read_terms();
  const sigset_t signals = watched_signals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &signals, &before);
  die_with(terms.parent, end_at_once);
  if (getsid(0) != getpid()) setsid();
  prctl(PR_SET_CHILD_SUBREAPER, 1);

  const pid_t leash = getpid();
  const pid_t program = fork();
  if (program < 0) give_up("fork");
  if (program == 0) become_program(terms, leash, before, argv + 1);
  setpgid(program, program); // both do it: neither may be too late
  let_go_of_pipes();
  watch(program, signals);
  end_like(sweep(program));
}

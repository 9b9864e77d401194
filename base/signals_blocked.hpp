// No signal is delivered to the calling thread, nor to a thread that it starts, while one of these lives: but
// for those that a thread raises by what it does itself, such as SIGSEGV.
#pragma once

#include <signal.h>

namespace kiln {

// Around the start of a thread of ours: signals are the host's, and its handlers' business.
class SignalsBlocked {
  public:
    SignalsBlocked() {
        sigset_t blocked;
        ::sigfillset(&blocked);
        // Blocked, those would end the process without the handler that the host may have for crashes.
        for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) {
            ::sigdelset(&blocked, own);
        }
        ::pthread_sigmask(SIG_BLOCK, &blocked, &before_);
    }
    ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

  private:
    sigset_t before_{};
};

}  // namespace kiln

// What a call of a driver needs around it, the same for every vendor: the device current, and a capture mode
// that lets it in; both put back afterwards.
//
// `Vendor` (hip/vendor.hpp, cuda/vendor.hpp) names the driver's types and entry points:
// clang-format off
//  Library            with `api`, the entry points
//  Status, kSuccess   what a call answers
//  Current            what is current on a thread: an ordinal with HIP, a context with CUDA
//  own_current        what is to be current for a device
//  get_current, set_current, exchange_capture_mode, forget_error
//  describe, error    the words for a Status, alone and as an Error
// clang-format on
#pragma once

#include <optional>
#include <utility>

#include "base/log.hpp"

namespace kiln::device::driver {

// A driver may answer any call with the failure of an earlier asynchronous one, whether it did its work or
// not. What is entered for is then refused with that failure; but what destroys something has to get in, and
// insists.
enum class Entering { once, insist };

// Makes a device the calling thread's current one, and puts back what was current before; a line in the log
// says when it can not.
template <class Vendor>
class CurrentDevice {
    using Status = typename Vendor::Status;
    using Library = typename Vendor::Library;
    using Current = typename Vendor::Current;

  public:
    CurrentDevice(const Library& library, int ordinal, Entering entering = Entering::once)
        : library_(library) {
        error_ = enter(ordinal);
        if (error_ != Vendor::kSuccess && entering == Entering::insist) {
            Vendor::forget_error(library_.api);
            overcome_ = std::exchange(error_, enter(ordinal));
        }
        if (error_ != Vendor::kSuccess) {
            Vendor::forget_error(library_.api);
        }
    }
    ~CurrentDevice() {
        if (!previous_) {
            return;
        }
        Status error = Vendor::kSuccess;
        for (int attempt = 0; attempt < 2; ++attempt) {
            error = Vendor::set_current(library_.api, *previous_);
            if (error == Vendor::kSuccess) {
                return;
            }
            Vendor::forget_error(library_.api);
        }
        log::error("the device that was current before could not be made so again: {}",
                   Vendor::describe(library_.api, error));
    }
    CurrentDevice(const CurrentDevice&) = delete;
    CurrentDevice& operator=(const CurrentDevice&) = delete;

    // Why the device is not current.
    [[nodiscard]] Status error() const { return error_; }
    // A failure that insisting got past, for the caller to pass on.
    [[nodiscard]] Status overcome() const { return overcome_; }

  private:
    [[nodiscard]] Status enter(int ordinal) {
        Current current{}, own{};
        Status error = Vendor::get_current(library_.api, &current);
        if (error == Vendor::kSuccess) {
            error = Vendor::own_current(library_, ordinal, &own);
        }
        if (error == Vendor::kSuccess && current != own) {
            // Put back even after a failure, which may have come with the switch.
            previous_ = previous_ ? previous_ : current;
            error = Vendor::set_current(library_.api, own);
        }
        return error;
    }

    const Library& library_;
    std::optional<Current> previous_;  // to be put back
    Status error_ = Vendor::kSuccess;
    Status overcome_ = Vendor::kSuccess;
};

// Lets the calling thread do, while any stream captures, what a capture would otherwise forbid: load and
// unload. Where error() says that the driver did not let it, neither may be done: it would break a capture.
template <class Vendor>
class RelaxedCapture {
    using Status = typename Vendor::Status;
    using Api = typename Vendor::Api;

  public:
    explicit RelaxedCapture(const Api& api, Entering entering = Entering::once) : api_(api) {
        if (Vendor::exchange_capture_mode(api_) == nullptr) {
            return;
        }
        error_ = exchange();
        if (error_ != Vendor::kSuccess && entering == Entering::insist) {
            error_ = exchanged_ ? Vendor::kSuccess : exchange();
        }
    }
    ~RelaxedCapture() {
        if (!exchanged_ || mode_ == Vendor::kRelaxed) {  // or there is nothing to put back
            return;
        }
        Status error = Vendor::kSuccess;
        for (int attempt = 0; attempt < 2 && exchanged_; ++attempt) {
            error = exchange();
        }
        if (exchanged_) {
            log::error("the thread's capture mode could not be put back: {}", Vendor::describe(api_, error));
        }
    }
    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;

    [[nodiscard]] Status error() const { return error_; }

  private:
    // Swaps mode_ with the thread's. To repeat a swap undoes it, so what mode_ holds says whether it was
    // done.
    [[nodiscard]] Status exchange() {
        const auto given = mode_;
        const Status error = Vendor::exchange_capture_mode(api_)(&mode_);
        if (error != Vendor::kSuccess) {
            Vendor::forget_error(api_);
        }
        if (error == Vendor::kSuccess || mode_ != given) {
            exchanged_ = !exchanged_;
        }
        return error;
    }

    const Api& api_;
    typename Vendor::CaptureMode mode_ = Vendor::kRelaxed;  // afterwards: the thread's own
    bool exchanged_ = false;
    Status error_ = Vendor::kSuccess;
};

}  // namespace kiln::device::driver

// Loading a code object through a driver, the same for every vendor: see guards.hpp for `Vendor`, which also
// has
//
// clang-format off
//  Module, Function, load_module, unload_module, get_function
//  force_in               makes the driver load a kernel now, and settles what a launch of it may ask for
//  is_earlier_failure     as Device::is_earlier_failure
//  kEnded                 what a driver answers that has ended with its process, as a static object may find it
// clang-format on
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "runtime/device/device.hpp"
#include "runtime/device/driver/guards.hpp"

namespace kiln::device::driver {

template <class Vendor>
class DriverModule final : public Module {
    using Status = typename Vendor::Status;
    using LibraryPointer = std::shared_ptr<const typename Vendor::Library>;

  public:
    // Loads `code_object` on the device. The module keeps the library.
    [[nodiscard]] static Result<std::unique_ptr<Module>> load(LibraryPointer library, int ordinal,
                                                              ByteView code_object) {
        // The driver takes a pointer and believes what the image says of its own size.
        constexpr std::size_t kElfHeaderBytes = 64;
        if (code_object.size() < kElfHeaderBytes) {
            return fail(ErrorCode::load_failed, Stage::load,
                        fmt::format("code object for device {}: expected an ELF file, found {} bytes",
                                    ordinal, code_object.size()));
        }
        typename Vendor::Module module{};
        auto loaded = call_relaxed(*library, ordinal, [&] {
            return Vendor::load_module(library->api, &module, code_object.data());
        });
        if (!loaded) {
            return tl::unexpected(Vendor::error(library->api, loaded.error().code, Stage::load,
                                                fmt::format("code object of {} bytes", code_object.size()),
                                                ordinal, loaded.error().status));
        }
        return std::make_unique<DriverModule>(std::move(library), ordinal, module);
    }

    DriverModule(LibraryPointer library, int ordinal, typename Vendor::Module module)
        : library_(std::move(library)), ordinal_(ordinal), module_(module) {}

    ~DriverModule() override {
        const auto& api = library_->api;
        const RelaxedCapture<Vendor> relaxed(api, Entering::insist);
        const CurrentDevice<Vendor> current(*library_, ordinal_, Entering::insist);
        Status error = entered(relaxed, current);
        if (error == Vendor::kSuccess) {
            error = Vendor::unload_module(api, module_);
        } else if (error != Vendor::kEnded) {
            // On another device the unload would not be this module's, in another mode it would break a
            // capture: it is left to the driver's end.
            log::error("a module of device {} stays loaded: {}", ordinal_, Vendor::describe(api, error));
        }
        if (error != Vendor::kSuccess) {
            Vendor::forget_error(api);
        }
    }

    Result<Function> function(const std::string& name) override {
        typename Vendor::Function function{};
        auto found = call_relaxed(*library_, ordinal_, [&] {
            const Status error = Vendor::get_function(library_->api, &function, module_, name.c_str());
            return error == Vendor::kSuccess ? Vendor::force_in(library_->api, ordinal_, function) : error;
        });
        if (!found) {
            return tl::unexpected(Vendor::error(library_->api, found.error().code, Stage::load,
                                                fmt::format("kernel {}", name), ordinal_,
                                                found.error().status));
        }
        return function;
    }

  private:
    struct Refusal {
        ErrorCode code;
        Status status;
    };

    // Why the driver can not be asked to load or unload, if so.
    static Status entered(const RelaxedCapture<Vendor>& relaxed, const CurrentDevice<Vendor>& current) {
        return relaxed.error() != Vendor::kSuccess ? relaxed.error() : current.error();
    }

    // A refusal is the code object's own fault, or something that a later attempt may find gone.
    template <class Call>
    static tl::expected<void, Refusal> call_relaxed(const typename Vendor::Library& library, int ordinal,
                                                    const Call& call) {
        const RelaxedCapture<Vendor> relaxed(library.api);
        const CurrentDevice<Vendor> current(library, ordinal);
        Status error = entered(relaxed, current);
        const bool reached = error == Vendor::kSuccess;
        if (reached) {
            error = call();
        }
        if (error != Vendor::kSuccess) {
            const bool ours = reached && !Vendor::is_earlier_failure(static_cast<int>(error));
            return tl::unexpected(Refusal{ours ? ErrorCode::load_failed : ErrorCode::device_failed, error});
        }
        return {};
    }

    const LibraryPointer library_;
    const int ordinal_;
    const typename Vendor::Module module_;
};

}  // namespace kiln::device::driver

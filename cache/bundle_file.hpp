// A bundle on disk: mapped, and taken only when its bytes can be trusted.
//
// What an entry holds is run with this user's rights. So the file must belong to root or the user and must
// not be writable by group or others, as layer.hpp says of folders; and where trusted keys are named, one of
// them must have signed it. A bundle is replaced by renaming another over it, never by writing into it:
// whoever has it open goes on with the old one.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "base/signature.hpp"
#include "cache/bundle.hpp"
#include "cache/layer.hpp"

namespace kiln::cache {

// One of these must have signed; nothing: nobody need have.
using TrustedKeys = std::optional<std::vector<PublicKey>>;

// Thread safe. Holds the mapping, and no descriptor.
class BundleFile {
  public:
    // A relative path is taken from the working folder of now, and a symbolic link is followed. not_found;
    // io; `environment` when it is not trusted, with what was expected and what was found; `damaged` when it
    // does not open as a bundle. Every message names the path.
    [[nodiscard]] static Result<std::shared_ptr<const BundleFile>> open(const std::filesystem::path& path,
                                                                        const TrustedKeys& trusted);
    ~BundleFile();
    BundleFile(const BundleFile&) = delete;
    BundleFile& operator=(const BundleFile&) = delete;

    [[nodiscard]] const BundleView& view() const { return view_; }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }  // absolute
    [[nodiscard]] std::chrono::system_clock::time_point written() const { return written_; }

  private:
    BundleFile(std::filesystem::path path, ByteView mapped, BundleView view,
               std::chrono::system_clock::time_point written)
        : path_(std::move(path)), mapped_(mapped), view_(std::move(view)), written_(written) {}

    const std::filesystem::path path_;
    const ByteView mapped_;
    const BundleView view_;
    const std::chrono::system_clock::time_point written_;
};

// The bundle as a layer: its entries one by one, each checked when it is asked for. A damaged one is a miss,
// reported once, and stays. Whether the file is there any more does not matter once it is open.
[[nodiscard]] Result<std::unique_ptr<Layer>> open_bundle_layer(const std::filesystem::path& path,
                                                               const TrustedKeys& trusted);

// Puts it in place atomically and durably, readable by everybody; bad_input where anything is there already.
[[nodiscard]] Result<void> publish_bundle(const std::filesystem::path& path, ByteView bundle);

}  // namespace kiln::cache

// What the key knows of the compiler: each of its libraries, replaced under the same name and version, is
// another compiler; and nothing of how this process writes numbers.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <clocale>
#include <cstdlib>
#include <fstream>
#include <locale>
#include <string>
#include <thread>
#include <vector>

#include "base/digest.hpp"
#include "base/file.hpp"
#include "runtime/compile/identity.hpp"
#include "runtime/compile/toolchain.hpp"
#include "tests/service/scratch.hpp"

namespace fs = std::filesystem;
using namespace kiln::service;
using kiln::test::open;
using kiln::test::overrides_in;
using kiln::test::Scratch;
using kiln::test::small_specialisation;
using kiln::test::small_table;

namespace {

struct Variable {
    Variable(const char* its_name, const std::string& value) : name(its_name) {
        const char* const old = std::getenv(name);
        before = old != nullptr ? std::optional<std::string>(old) : std::nullopt;
        ::setenv(name, value.c_str(), 1);
    }
    ~Variable() {
        if (before) {
            ::setenv(name, before->c_str(), 1);
        } else {
            ::unsetenv(name);
        }
    }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;
    const char* name;
    std::optional<std::string> before;
};

// A prefix of links to the toolchain's files, of which one at a time may be another build.
class Prefix {
  public:
    explicit Prefix(const fs::path& where) : prefix_(where) {
        const auto found = kiln::compile::find_toolchain({}, kiln::compile::Family::amdgpu);
        REQUIRE_MESSAGE(found, (found ? "" : found.error().message));
        const auto components = kiln::compile::identify(*found);
        REQUIRE_MESSAGE(components, (components ? "" : components.error().message));
        components_ = *components;
        const bool has_loader = !found->loader.empty();
        folder_ = has_loader ? where / "usr" / "lib" / "x86_64-linux-gnu" : where / "lib";
        fs::create_directories(folder_);
        if (has_loader) {
            for (const auto& entry : fs::directory_iterator(found->folder)) {
                fs::create_symlink(entry.path(), folder_ / entry.path().filename());
            }
        } else {
            for (const auto& component : components_) {
                fs::create_symlink(component.path, folder_ / component.path.filename());
            }
        }
    }

    const fs::path& path() const { return prefix_; }
    const std::vector<kiln::compile::Component>& components() const { return components_; }

    // The same library with one bit of its build id changed.
    void replace(const kiln::compile::Component& component) const {
        const fs::path copy = folder_ / "copy";
        fs::copy_file(component.path, copy);
        fs::permissions(copy, fs::perms::owner_all, fs::perm_options::add);
        std::string head(1 << 16, '\0');
        const kiln::UniqueFd fd(::open(copy.c_str(), O_RDWR | O_CLOEXEC));
        REQUIRE(::pread(fd.get(), head.data(), head.size(), 0) > 0);
        REQUIRE(!component.build_id.empty());
        std::string id;
        for (std::size_t i = 0; i < component.build_id.size(); i += 2) {
            id += static_cast<char>(std::stoi(component.build_id.substr(i, 2), nullptr, 16));
        }
        const auto at = head.find(id);
        REQUIRE(at != std::string::npos);
        const char changed = static_cast<char>(head[at] ^ 1);
        REQUIRE(::pwrite(fd.get(), &changed, 1, static_cast<off_t>(at)) == 1);
        fs::rename(copy, folder_ / component.path.filename());
    }
    void restore(const kiln::compile::Component& component) const {
        fs::create_symlink(component.path, folder_ / "link");
        fs::rename(folder_ / "link", folder_ / component.path.filename());
    }

  private:
    fs::path prefix_;
    fs::path folder_;
    std::vector<kiln::compile::Component> components_;
};

struct Story {
    Scratch scratch;
    Prefix prefix{scratch.folder() / "rocm"};
    Variable variable{"KILN_ROCM_PREFIX", prefix.path().string()};
    Overrides overrides = overrides_in(scratch);
    std::unique_ptr<Service> service;

    Story() {
        overrides.shapes_path = scratch.write("table.json", small_table()).string();
        service = open(overrides);
    }

    ArtifactPtr obtain() const {
        kiln::Result<ArtifactPtr> artifact = service->obtain(small_specialisation(*service));
        REQUIRE_MESSAGE(artifact, (artifact ? "" : artifact.error().message));
        return *artifact;
    }
    [[nodiscard]] std::size_t num_entries() const { return service->builder().store()->list()->size(); }
};

// The workers of this process.
std::vector<int> workers() {
    std::vector<int> pids;
    for (const auto& thread : fs::directory_iterator("/proc/self/task")) {
        std::ifstream file(thread.path() / "children");
        for (int pid = 0; file >> pid;) {
            pids.push_back(pid);
        }
    }
    return pids;
}

}  // namespace

TEST_CASE_FIXTURE(Story, "compiler story: each library that is replaced is another compiler") {
    const ArtifactPtr first = obtain();
    CHECK(first->source == ArtifactSource::compiled);
    CHECK(obtain()->source == ArtifactSource::cache);
    std::vector<std::string> digests{first->key_digest};
    std::uint64_t compiles = 1;
    REQUIRE(prefix.components().size() >= 3);
    // The service that was open all the while notices, and so does one that opens later.
    for (const auto& component : prefix.components()) {
        CAPTURE(component.name);
        const auto before = workers();
        prefix.replace(component);
        const ArtifactPtr other = obtain();
        CHECK(other->source == ArtifactSource::compiled);
        CHECK(service->statistics().compiles == ++compiles);
        CHECK(std::find(digests.begin(), digests.end(), other->key_digest) == digests.end());
        digests.push_back(other->key_digest);
        CHECK(other->code_object == first->code_object);  // it is the same compiler under another name
        // No worker that has the old library loaded is asked.
        for (const int worker : workers()) {
            CHECK(std::find(before.begin(), before.end(), worker) == before.end());
        }
        CHECK(open(overrides)->obtain(small_specialisation(*service)).value()->source ==
              ArtifactSource::cache);

        prefix.restore(component);
        const ArtifactPtr again = obtain();
        CHECK(again->source == ArtifactSource::cache);
        CHECK(again->key_digest == first->key_digest);
    }
    CHECK(service->statistics().compiles == compiles);
    CHECK(num_entries() == compiles);
}

TEST_CASE_FIXTURE(Story, "compiler story: what was built while a library was replaced is used and not kept") {
    const auto& component = prefix.components().back();
    std::thread swap([&] {
        while (workers().empty()) {  // the key is made by then
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        prefix.replace(component);
    });
    const ArtifactPtr first = obtain();
    swap.join();
    CHECK(first->source == ArtifactSource::compiled);
    CHECK(num_entries() == 0);
    const ArtifactPtr second = obtain();
    CHECK(second->source == ArtifactSource::compiled);
    CHECK(second->key_digest != first->key_digest);
    CHECK(num_entries() == 1);
    CHECK(obtain()->source == ArtifactSource::cache);
}

TEST_CASE_FIXTURE(Story, "compiler story: keys and entries do not depend on how numbers are written") {
    const ArtifactPtr first = obtain();
    struct Grouping : std::numpunct<char> {
        char do_decimal_point() const override { return ','; }
        char do_thousands_sep() const override { return '.'; }
        std::string do_grouping() const override { return "\1"; }
    };
    const std::string command = "localedef -i de_DE -f UTF-8 '" +
                                (scratch.folder() / "de_DE.UTF-8").string() + "' >'" +
                                (scratch.folder() / "log").string() + "' 2>&1";
    const bool has_locale = std::system(command.c_str()) == 0;
    const Variable path("LOCPATH", scratch.folder().string());
    const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Grouping));
    if (has_locale) {
        REQUIRE(std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr);
    } else {
        MESSAGE("this machine can not make the locale de_DE.UTF-8 (localedef): C++ locale alone");
    }
    const auto service_abroad = open(overrides);
    const auto cached = service_abroad->obtain(small_specialisation(*service_abroad));
    fs::remove_all(scratch.cache());
    const auto compiled = open(overrides)->obtain(small_specialisation(*service_abroad));
    const auto statistics = service_abroad->statistics();
    std::setlocale(LC_ALL, "C");
    std::locale::global(before);

    REQUIRE(cached);
    CHECK((*cached)->source == ArtifactSource::cache);
    CHECK((*cached)->key_document == first->key_document);
    CHECK((*cached)->metadata.get() == first->metadata.get());
    CHECK(statistics.compiles == 0);
    REQUIRE_MESSAGE(compiled, (compiled ? "" : compiled.error().message));
    CHECK((*compiled)->source == ArtifactSource::compiled);
    CHECK((*compiled)->key_document == first->key_document);
    CHECK((*compiled)->key_digest == first->key_digest);
    CHECK((*compiled)->code_object == first->code_object);
    CHECK((*compiled)->listing.get() == first->listing.get());
    // And what was written abroad is read at home.
    const auto home = obtain();
    CHECK(home->source == ArtifactSource::cache);
    CHECK(home->metadata.get() == (*compiled)->metadata.get());
}

#include "runtime/compile/cubin.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "runtime/compile/cubin_info.hpp"

namespace kiln::compile {
namespace {

constexpr std::size_t kMostSections = 4096;
constexpr std::uint32_t kNoteToolInfo = 2000;  // of owner "NVIDIA Corp"
constexpr unsigned char kEntry = 0x10;         // STO_CUDA_ENTRY, of a symbol's st_other
constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kMostThreads = 1024;  // of a block, where the source states no bound
// Of a block's shared memory, before the kernel's own, where the cubin has the symbol that stands for it.
constexpr std::uint64_t kReservedSharedBytes = 1024;
constexpr std::string_view kReservedShared = ".nv.reservedSmem.offset0";
// Before version 8 of the ABI, e_flags holds the processor so.
constexpr unsigned char kAbiOfNewFlags = 8;
constexpr std::uint32_t kOldFlagsProcessor = 0xff;
constexpr std::uint32_t kOldFlagsAccelerated = 0x800;

auto bad(std::string message) {
    return fail(ErrorCode::bad_input, Stage::load, "code object: " + std::move(message));
}

bool is_word(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

// The note of the tool that made it: six words, the last the offset of the tool's options among the texts
// that follow them. "-arch sm_90a".
std::string target_of_note(ByteView note) {
    constexpr std::size_t kTexts = 24;
    std::uint32_t options_at = 0;
    if (note.size() < kTexts) {
        return {};
    }
    std::memcpy(&options_at, note.data() + kTexts - sizeof options_at, sizeof options_at);
    std::string_view options = as_text(note).substr(kTexts);
    options.remove_prefix(std::min<std::size_t>(options_at, options.size()));
    options = options.substr(0, options.find('\0'));
    constexpr std::string_view kOption = "-arch ";
    const std::size_t at = options.find(kOption);
    if (at == std::string_view::npos) {
        return {};
    }
    options.remove_prefix(at + kOption.size());
    return std::string(options.substr(0, options.find(' ')));
}

Result<std::string> read_target(const ElfFile& file) {
    std::string target;
    if (const auto note = file.section_note("NVIDIA Corp", kNoteToolInfo)) {
        target = target_of_note(*note);
    }
    const Elf64_Ehdr& header = file.header();
    if (target.empty() && header.e_ident[EI_ABIVERSION] < kAbiOfNewFlags) {
        target = fmt::format("sm_{}{}", header.e_flags & kOldFlagsProcessor,
                             (header.e_flags & kOldFlagsAccelerated) != 0 ? "a" : "");
    }
    if (!target.starts_with("sm_") || !is_word(target)) {
        return bad(
            fmt::format("expected a cubin that names its target, such as sm_90a, found \"{}\"", target));
    }
    return target;
}

class Reader {
  public:
    Reader(const ElfFile& file, const MemorySource& source) : file_(file), source_(source) {}

    Result<CodeObject> read() {
        if (file_.header().e_type != ET_EXEC) {
            return bad(fmt::format("expected a cubin that is linked (type {}), found type {}", ET_EXEC,
                                   file_.header().e_type));
        }
        auto target = read_target(file_);
        if (!target) {
            return fail(target);
        }
        object_.target = *std::move(target);
        for (const auto& step : {&Reader::index_sections, &Reader::find_text, &Reader::find_kernels,
                                 &Reader::read_common_info}) {
            if (auto done = (this->*step)(); !done) {
                return fail(done);
            }
        }
        for (std::size_t i = 0; i < object_.kernels.size(); ++i) {
            if (auto done = complete(object_.kernels[i]); !done) {
                return fail(done);
            }
        }
        return std::move(object_);
    }

  private:
    Result<void> index_sections() {
        if (file_.sections().size() > kMostSections) {
            return bad(fmt::format("expected a cubin of at most {} sections, found {}", kMostSections,
                                   file_.sections().size()));
        }
        for (const auto& section : file_.sections()) {
            sections_.emplace(file_.section_name(section), &section);  // the first of a name
        }
        return {};
    }

    [[nodiscard]] const Elf64_Shdr* find(const std::string& name) const {
        const auto found = sections_.find(name);
        return found == sections_.end() ? nullptr : found->second;
    }

    Result<ByteView> contents(const Elf64_Shdr& section) const {
        const auto bytes = source_.view(section.sh_offset, section.sh_size);
        if (!bytes) {
            return bad(fmt::format("section {} claims {} bytes at {} of a file of {}",
                                   file_.section_name(section), section.sh_size, section.sh_offset,
                                   source_.size()));
        }
        return *bytes;
    }

    Result<void> find_text() {
        std::uint64_t begin = std::numeric_limits<std::uint64_t>::max();
        std::uint64_t end = 0;
        for (const auto& section : file_.sections()) {
            if (section.sh_type != SHT_PROGBITS || (section.sh_flags & SHF_EXECINSTR) == 0) {
                continue;
            }
            if (auto bytes = contents(section); !bytes) {
                return fail(bytes);
            }
            begin = std::min(begin, section.sh_offset);
            end = std::max(end, section.sh_offset + section.sh_size);
        }
        if (begin >= end) {
            return bad("expected a section of code, found none");
        }
        text_at_ = begin;
        object_.text = *source_.view(begin, end - begin);
        return {};
    }

    // Every function that is an entry, each in a section of its own.
    Result<void> find_kernels() {
        const Elf64_Shdr* const symbols = find(".symtab");
        if (symbols == nullptr || symbols->sh_type != SHT_SYMTAB ||
            symbols->sh_link >= file_.sections().size()) {
            return bad("expected a table of symbols, found none");
        }
        const Elf64_Shdr& names = file_.sections()[symbols->sh_link];
        auto table = contents(*symbols);
        if (!table) {
            return fail(table);
        }
        for (std::uint32_t i = 0; i < table->size() / sizeof(Elf64_Sym); ++i) {
            Elf64_Sym symbol{};
            std::memcpy(&symbol, table->data() + i * sizeof symbol, sizeof symbol);
            const bool is_entry =
                ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && (symbol.st_other & kEntry) != 0;
            const bool may_be_reserve =
                !has_reserve_ && ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && symbol.st_shndx == SHN_UNDEF;
            if ((!is_entry && !may_be_reserve) || symbol.st_name >= names.sh_size) {
                continue;
            }
            if (may_be_reserve) {  // compared in place: such symbols may be many, and their names long
                const auto name = source_.view(names.sh_offset + symbol.st_name, kReservedShared.size() + 1);
                has_reserve_ = name && as_text(*name).substr(0, kReservedShared.size()) == kReservedShared &&
                               as_text(*name).back() == '\0';
                continue;
            }
            const auto name = file_.string_at(names.sh_offset + symbol.st_name);
            if (auto added = add_kernel(i, symbol, name.value_or("")); !added) {
                return added;
            }
        }
        return {};
    }

    Result<void> add_kernel(std::uint32_t index, const Elf64_Sym& symbol, const std::string& name) {
        if (!is_word(name)) {
            return bad(fmt::format("kernel {}: expected a name of printable characters without white space",
                                   object_.kernels.size()));
        }
        const Elf64_Shdr* const code = find(".text." + name);
        if (code == nullptr || symbol.st_shndx >= file_.sections().size() ||
            &file_.sections()[symbol.st_shndx] != code || symbol.st_value >= code->sh_size ||
            code->sh_type != SHT_PROGBITS || (code->sh_flags & SHF_EXECINSTR) == 0) {
            return bad(fmt::format("kernel {}: it does not lie in a section .text.{}", name, name));
        }
        if (!names_.insert(name).second) {
            return bad(fmt::format("kernel {}: it is there twice", name));
        }
        KernelInfo kernel;
        kernel.name = name;
        kernel.max_threads = kMostThreads;
        kernel.wavefront = kWarp;
        kernel.entry_address = code->sh_offset - text_at_ + symbol.st_value;
        by_symbol_.emplace(index, object_.kernels.size());
        object_.kernels.push_back(std::move(kernel));
        return {};
    }

    Result<std::vector<InfoAttribute>> info(const std::string& name) const {
        const Elf64_Shdr* const section = find(name);
        if (section == nullptr) {
            return bad(fmt::format("expected a section {}, found none", name));
        }
        auto bytes = contents(*section);
        if (!bytes) {
            return fail(bytes);
        }
        return read_info(*bytes);
    }

    // What .nv.info says of each function by the number of its symbol.
    Result<void> read_common_info() {
        auto attributes = info(".nv.info");
        if (!attributes) {
            return fail(attributes);
        }
        std::size_t counted = 0;
        for (const auto& [code, value, words] : *attributes) {
            const auto found = words.size() == 2 ? by_symbol_.find(words[0]) : by_symbol_.end();
            if (found == by_symbol_.end()) {
                continue;
            }
            KernelInfo& kernel = object_.kernels[found->second];
            if (code == InfoCode::register_count) {
                kernel.vgprs = words[1];
                ++counted;
            } else if (code == InfoCode::frame_size || code == InfoCode::min_stack_size) {
                kernel.scratch_bytes = std::max(kernel.scratch_bytes, words[1]);
            }
        }
        if (counted < object_.kernels.size()) {
            return bad("expected the number of registers of each kernel in .nv.info, found fewer");
        }
        return {};
    }

    Result<void> complete(KernelInfo& kernel) const {
        auto attributes = info(".nv.info." + kernel.name);
        if (!attributes) {
            return fail(attributes);
        }
        std::map<std::uint32_t, KernelArgument> arguments;  // by ordinal
        for (const auto& [code, value, words] : *attributes) {
            const bool dimensions = words.size() == 3;
            if (code == InfoCode::parameters_bytes) {
                kernel.kernarg_bytes = value;
            } else if ((code == InfoCode::parameter || code == InfoCode::large_parameter) && dimensions) {
                const std::uint32_t bytes = code == InfoCode::parameter ? words[2] >> 18 : words[2];
                arguments[words[1] & 0xffff] = {
                    .name = {}, .value_kind = {}, .offset = words[1] >> 16, .size = bytes};
            } else if ((code == InfoCode::max_threads || code == InfoCode::required_threads) && dimensions) {
                kernel.max_threads = std::min(product(words), kernel.max_threads);
            } else if (code == InfoCode::cluster && dimensions) {
                kernel.cluster = std::max(product(words), 1u);
            }
        }
        for (auto& [ordinal, argument] : arguments) {
            if (ordinal != kernel.arguments.size() || argument.offset > kernel.kernarg_bytes ||
                argument.size > kernel.kernarg_bytes - argument.offset) {
                return bad(fmt::format("kernel {}: argument {} of {} bytes at {} is not the next of {} bytes",
                                       kernel.name, ordinal, argument.size, argument.offset,
                                       kernel.kernarg_bytes));
            }
            kernel.arguments.push_back(std::move(argument));
        }
        if (const Elf64_Shdr* const shared = find(".nv.shared." + kernel.name)) {
            const std::uint64_t reserved = has_reserve_ ? kReservedSharedBytes : 0;
            const std::uint64_t bytes = shared->sh_size - std::min(shared->sh_size, reserved);
            if (bytes > std::numeric_limits<std::uint32_t>::max()) {
                return bad(fmt::format("kernel {}: {} bytes of shared memory", kernel.name, bytes));
            }
            kernel.lds_bytes = static_cast<std::uint32_t>(bytes);
        }
        return {};
    }

    // Of the three dimensions, as far as 32 bits go.
    static std::uint32_t product(const std::vector<std::uint32_t>& words) {
        std::uint64_t all = 1;
        for (const std::uint32_t word : words) {
            all = std::min<std::uint64_t>(all * word, std::numeric_limits<std::uint32_t>::max());
        }
        return static_cast<std::uint32_t>(all);
    }

    const ElfFile& file_;
    const MemorySource& source_;
    std::map<std::string, const Elf64_Shdr*, std::less<>> sections_;
    std::set<std::string, std::less<>> names_;        // of the kernels
    std::map<std::uint32_t, std::size_t> by_symbol_;  // which of object_.kernels
    std::uint64_t text_at_ = 0;                       // where object_.text begins in the file
    bool has_reserve_ = false;
    CodeObject object_;
};

}  // namespace

Result<CodeObject> read_cubin(const ElfFile& file, const MemorySource& source) {
    return Reader(file, source).read();
}

}  // namespace kiln::compile

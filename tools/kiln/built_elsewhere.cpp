#include "tools/kiln/built_elsewhere.hpp"

#include <map>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "runtime/compile/compiler.hpp"

namespace kiln::cli {

std::uint64_t count_built_elsewhere(const cache::Layer& layer, const service::Settings& settings) {
    std::map<std::string, std::uint64_t> by_build;
    std::set<std::string> targets;
    const auto summaries = layer.list();
    for (const auto& summary : summaries ? *summaries : std::vector<cache::EntrySummary>()) {
        if (const auto stored = layer.read(summary)) {
            const auto key = nlohmann::json::parse(stored->key.document());
            ++by_build[key["build"].dump()];
            targets.insert(key["request"].value("target", ""));
        }
    }
    compile::CompilerConfig config;
    config.worker = settings.worker;
    const auto compiler = compile::Compiler::create(config);
    for (const auto& target : targets) {
        if (const auto identity = compiler && !target.empty()
                                      ? (*compiler)->identity(target)
                                      : Result<compile::CompilerIdentity>(tl::unexpected(Error{}))) {
            by_build.erase(nlohmann::json::parse(identity->document).dump());
        }
    }
    std::uint64_t elsewhere = 0;
    for (const auto& [build, count] : by_build) {
        elsewhere += count;
    }
    return elsewhere;
}

}  // namespace kiln::cli

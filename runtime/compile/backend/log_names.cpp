#include "runtime/compile/backend/log_names.hpp"

#include <algorithm>

namespace kiln::compile::backend {

std::string with_template_names(std::string_view log, std::string_view scratch) {
    const std::string folder = std::string(scratch) + "/comgr-";
    std::string named;
    while (true) {
        const auto found = log.find(folder);
        named += log.substr(0, found);
        if (found == std::string_view::npos) {
            return named;
        }
        log.remove_prefix(found);
        const auto below = std::min(log.find('/', folder.size()), log.size());
        std::size_t prefix = 0;
        for (const std::string_view part : {"/input/", "/include/"}) {
            if (log.substr(below).starts_with(part)) {
                prefix = below + part.size();
            }
        }
        if (prefix == 0) {  // some other file of comgr's: its name stays as it is
            prefix = folder.size();
            named += folder;
        }
        log.remove_prefix(prefix);
    }
}

}  // namespace kiln::compile::backend

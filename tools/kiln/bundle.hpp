// kiln bundle: many code objects in one file. A command of its own for each thing to do with one.
#pragma once

#include "tools/kiln/command.hpp"

namespace kiln::cli {

void add_bundle_create(CLI::App& bundle, Invocation& invocation);
void add_bundle_inspect(CLI::App& bundle, Invocation& invocation);
void add_bundle_verify(CLI::App& bundle, Invocation& invocation);
void add_bundle_install(CLI::App& bundle, Invocation& invocation);
void add_bundle_merge(CLI::App& bundle, Invocation& invocation);

}  // namespace kiln::cli

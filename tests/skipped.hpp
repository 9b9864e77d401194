// A test program that can not run on every machine defines this: unless it is empty, the program prints
// "skipped: " and what it returns, and ends with 0.
#pragma once

#include <string>

namespace kiln::test {

[[gnu::weak]] std::string why_skipped();

}  // namespace kiln::test

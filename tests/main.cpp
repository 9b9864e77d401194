// The main of every test program. What the machine's own folders of configuration hold has no say in a test.
// Below doctest's summary stand the failures once more, a line each: of a long log often only its end is
// kept.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <stdlib.h>

#include <cstdio>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/skipped.hpp"

namespace {

std::mutex failures_mutex;
std::vector<std::string> failures;

std::string in_one_line(std::string text, std::size_t limit) {
    if (text.size() > limit) {
        text.resize(limit);
        text += "...";
    }
    for (char& c : text) {
        c = c == '\n' ? ' ' : c;
    }
    return text;
}

struct FailureListener final : doctest::IReporter {
    explicit FailureListener(const doctest::ContextOptions&) {}
    void test_case_start(const doctest::TestCaseData& test) override { test_ = &test; }
    void test_case_reenter(const doctest::TestCaseData& test) override { test_ = &test; }
    void test_case_exception(const doctest::TestCaseException& thrown) override {
        add(test_->m_file.c_str(), static_cast<int>(test_->m_line), thrown.error_string.c_str());
    }
    void log_assert(const doctest::AssertData& checked) override {
        if (checked.m_failed && (checked.m_at & doctest::assertType::is_warn) == 0) {
            add(checked.m_file, checked.m_line,
                checked.m_threw ? checked.m_exception.c_str() : checked.m_decomp.c_str());
        }
    }
    void log_message(const doctest::MessageData& said) override {
        if ((said.m_severity & doctest::assertType::is_warn) == 0) {
            add(said.m_file, said.m_line, said.m_string.c_str());
        }
    }
    void report_query(const doctest::QueryData&) override {}
    void test_run_start() override {}
    void test_run_end(const doctest::TestRunStats&) override {}
    void test_case_end(const doctest::CurrentTestCaseStats&) override {}
    void subcase_start(const doctest::SubcaseSignature&) override {}
    void subcase_end() override {}
    void test_case_skipped(const doctest::TestCaseData&) override {}

  private:
    void add(const char* file, int line, const std::string& what) {
        constexpr std::size_t kMost = 8;
        const std::lock_guard lock(failures_mutex);
        if (failures.size() == kMost) {
            return;
        }
        std::ostringstream text;
        text << "failed: " << test_->m_name << " (" << file << ':' << line << "): " << in_one_line(what, 160);
        for (int i = 0; i < get_num_active_contexts(); ++i) {
            std::ostringstream context;
            get_active_contexts()[i]->stringify(&context);
            text << "; " << in_one_line(context.str(), 240);
        }
        failures.push_back(text.str());
    }
    const doctest::TestCaseData* test_ = nullptr;
};

}  // namespace

REGISTER_LISTENER("failures", 1, FailureListener);

int main(int argc, char** argv) {
    constexpr const char* kNowhere = "/nonexistent/kiln-tests";
    setenv("XDG_CONFIG_HOME", kNowhere, 1);
    setenv("XDG_CONFIG_DIRS", kNowhere, 1);
    if (const std::string why = kiln::test::why_skipped != nullptr ? kiln::test::why_skipped() : "";
        !why.empty()) {
        std::printf("skipped: %s\n", why.c_str());
        return 0;
    }
    const int status = doctest::Context(argc, argv).run();
    for (const auto& failure : failures) {
        std::puts(failure.c_str());
    }
    return status;
}

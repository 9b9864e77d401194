#include "shipped.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/digest.hpp"
#include "cache/key.hpp"
#include "cache/store.hpp"
#include "runtime/embedded/embedded.hpp"
#include "runtime/operators/kernel_launch.hpp"
#include "runtime/operators/operator.hpp"
#include "runtime/tables/loader.hpp"
#include "value_of.hpp"

namespace kiln::kernels_test {

namespace {

Result<std::optional<std::string>> embedded_source(std::string_view path) {
    const embedded::EmbeddedFile* file = embedded::find(embedded::kernel_files(), path);
    return file == nullptr ? std::optional<std::string>{} : std::string(file->text);
}

operators::Pipeline pipeline_of(const tables::Row& row, const tables::Bucket& bucket) {
    const operators::Operator* op = operators::find_operator(row.operator_name);
    REQUIRE(op != nullptr);
    return value_of(operators::make_pipeline(*op, row.problem, bucket, row.target,
                                             operators::SourceLookup(embedded_source)));
}

}  // namespace

std::vector<operators::Specialisation> shipped_specialisations(std::string_view processor,
                                                               std::string_view operator_name) {
    const embedded::EmbeddedFile* schema =
        embedded::find(embedded::shape_files(), "schema/shape_table.schema.json");
    REQUIRE(schema != nullptr);
    tables::Layer layer;  // of the kind that is held to the schema
    for (const embedded::EmbeddedFile& file : embedded::shape_files()) {
        if (!file.path.starts_with("schema/")) {
            layer.texts.push_back({std::string(file.path), std::string(file.text)});
        }
    }
    const auto loader = value_of(tables::Loader::create(schema->text, operators::check_row));
    const tables::LoadedTable loaded = loader->load({layer});
    for (const tables::Fault& fault : loaded.faults) {
        FAIL_CHECK(fault.text());
    }
    std::vector<operators::Specialisation> all;
    const auto add = [&](const tables::Row& row) {
        for (const tables::Bucket& bucket : row.buckets) {
            for (operators::SpecialisedStage& stage : pipeline_of(row, bucket).stages) {
                all.push_back(std::move(stage.specialisation));
            }
        }
    };
    for (const tables::Row* row : loaded.table.rows()) {
        if (row->target.processor != processor || row->operator_name != operator_name) {
            continue;
        }
        if (!row->is_general()) {
            add(*row);
        }
        for (const tables::Problem& problem : row->problems) {
            add(value_of(operators::row_at(*row, problem)));
        }
    }
    return all;
}

operators::Specialisation specialise_linear(std::int64_t n, std::int64_t k, std::int64_t max_m,
                                            const tables::Constants& constants, std::string_view processor) {
    const auto problem = value_of(operators::complete(operators::linear(), {{"n", n}, {"k", k}}));
    return specialise_shape(operators::linear(), problem, {max_m, "linear/small_m", constants}, processor);
}

operators::Pipeline pipeline_for(const operators::Operator& op, const operators::Problem& problem,
                                 const operators::Bucket& bucket, std::string_view processor) {
    tables::Row row;
    row.operator_name = op.name();
    row.problem = problem;
    row.target = value_of(tables::parse_target(processor));
    row.buckets = {bucket};
    for (const tables::RowFault& fault : operators::check_row(row)) {
        FAIL_CHECK(fault.pointer << ": expected " << fault.expected << ", found " << fault.found);
    }
    return pipeline_of(row, row.buckets.front());
}

operators::Specialisation specialise_shape(const operators::Operator& op, const operators::Problem& problem,
                                           const operators::Bucket& bucket, std::string_view processor) {
    operators::Pipeline pipeline = pipeline_for(op, problem, bucket, processor);
    REQUIRE(pipeline.stages.size() == 1);
    return std::move(pipeline.stages.front().specialisation);
}

compile::KernelInfo Built::kernel() const {
    const auto object = value_of(compile::read_code_object(result.code_object));
    REQUIRE(object.kernels.size() == 1);
    REQUIRE(object.kernels.front().name == specialisation.kernel_name);
    return object.kernels.front();
}

compile::KernelInfo Built::kernel(std::string_view part) const {
    const auto object = value_of(compile::read_code_object(result.code_object));
    const std::string symbol = operators::kernel_symbol(specialisation.kernel_name, part);
    for (const compile::KernelInfo& kernel : object.kernels) {
        if (kernel.name == symbol) {
            return kernel;
        }
    }
    FAIL("no kernel " << symbol);
    return {};
}

bool can_build_for(std::string_view processor) {
    auto compiler = compile::Compiler::create({});
    const Result<void> able = compiler ? (*compiler)->probe(std::string(processor)) : fail(compiler);
    if (!able && able.error().code == ErrorCode::environment) {
        MESSAGE("skipped: " << able.error().message);
        return false;
    }
    return true;
}

namespace {

// Where code objects of earlier tests lie, if anywhere. One with a warning is not kept, so that every test
// that looks for warnings gets to see it.
std::unique_ptr<cache::Store> open_store() {
    const char* folder = std::getenv("KERNEL_TEST_STORE");
    return folder == nullptr ? nullptr : value_of(cache::Store::open(folder));
}

// All that the compiler is given: a test may have broken a template on purpose.
std::string document_of(const compile::CompileRequest& request) {
    std::string all = fmt::format("{}\n{}\n{}\n{}", request.name, request.target,
                                  fmt::join(request.options, "\n"), request.source);
    for (const compile::Header& header : request.headers) {
        all += fmt::format("\n{} {}\n{}", header.name, header.text.size(), header.text);
    }
    return fmt::format(R"({{"test":"{}"}})", sha256(all).hex());
}

Result<compile::CompileResult> obtain(const compile::CompileRequest& request, compile::Compiler& compiler,
                                      cache::Store* store) {
    if (store == nullptr) {
        return compiler.compile(request);
    }
    const Result<compile::CompilerIdentity> identity = compiler.identity(request.target);
    if (!identity) {
        return tl::unexpected<Error>(identity.error());
    }
    Result<cache::Key> key = cache::Key::make(document_of(request), identity->document);
    if (!key) {
        return fail(key);
    }
    if (auto kept = store->get(*key); kept && kept->has_value()) {
        compile::CompileResult result;
        result.code_object = std::move((*kept)->code_object);
        result.listing = std::move((*kept)->listing);
        return result;
    }
    Result<compile::CompileResult> result = compiler.compile(request);
    if (result && result->log.empty()) {
        // A disk that is full costs time later, and no result now.
        static_cast<void>(store->put(*key, {result->code_object, "{}", result->listing}));
    }
    return result;
}

}  // namespace

std::vector<Built> build(std::vector<operators::Specialisation> specialisations) {
    const auto compiler = value_of(compile::Compiler::create({}));
    const std::unique_ptr<cache::Store> store = open_store();
    std::vector<std::future<Result<compile::CompileResult>>> results;
    results.reserve(specialisations.size());
    for (const operators::Specialisation& specialisation : specialisations) {
        results.push_back(std::async(std::launch::async, [&compiler, &specialisation, &store] {
            return obtain(specialisation.request, *compiler, store.get());
        }));
    }
    std::vector<Built> built;
    for (std::size_t i = 0; i < results.size(); ++i) {
        INFO(specialisations[i].kernel_name);
        compile::CompileResult result = value_of(results[i].get());  // from here on nobody reads the request
        built.push_back({std::move(specialisations[i]), std::move(result)});
    }
    return built;
}

}  // namespace kiln::kernels_test

#include "runtime/embedded/embedded.hpp"
#include "runtime/service/service.hpp"

namespace kiln::service {

namespace {
constexpr std::string_view kSchema = "schema/shape_table.schema.json";
constexpr std::string_view kSchemaFolder = "schema/";
}  // namespace

Result<tables::LoadedTable> load_tables(const std::string& shapes_path) {
    const embedded::EmbeddedFile* schema = embedded::find(embedded::shape_files(), kSchema);
    if (schema == nullptr) {
        return fail(ErrorCode::internal, Stage::table,
                    "the library was built without the schema of its shape tables");
    }
    const Result<std::unique_ptr<tables::Loader>> loader =
        tables::Loader::create(schema->text, operators::check_row);
    if (!loader) {
        return tl::unexpected<Error>(loader.error());
    }
    Result<std::vector<tables::Layer>> layers = tables::read_layers(shapes_path);
    if (!layers) {
        return fail(layers);
    }
    tables::Layer shipped;
    for (const embedded::EmbeddedFile& file : embedded::shape_files()) {
        if (!file.path.starts_with(kSchemaFolder)) {
            shipped.push_back({"shapes/" + std::string(file.path), std::string(file.text)});
        }
    }
    layers->push_back(std::move(shipped));
    return (*loader)->load(*layers);
}

}  // namespace kiln::service

#include "runtime/shipped/archive.hpp"
#include "runtime/shipped/data.hpp"
#include "runtime/shipped/shipped.hpp"

namespace kiln::shipped {

tables::RowLayer rows() {
    tables::RowLayer layer;
    Reader reader(row_numbers(), row_texts());
    transfer(reader, layer);
    return layer;
}

}  // namespace kiln::shipped

//! Tables as Parquet files: one row group, every column optional, uncompressed. Lists have the three
//! levels that the format's specification asks for.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type as Node, TypePtr};

use super::table::{Cell, Column, Table, Type};

/// The bytes of a Parquet file with this table. Equal tables give equal bytes.
///
/// # Errors
/// The library refuses; nothing that a [`Table`] can hold is known to make it.
pub fn bytes(table: &Table) -> Result<Vec<u8>, ParquetError> {
    let fields: Result<Vec<TypePtr>, _> = table.columns.iter().map(field).collect();
    let schema = Arc::new(Node::group_type_builder("schema").with_fields(fields?).build()?);
    let properties = WriterProperties::builder()
        .set_created_by(format!("casemate {}", env!("CARGO_PKG_VERSION")))
        // A dictionary for a page of a few numbers is longer than the numbers.
        .set_dictionary_enabled(false)
        .build();
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for column in &table.columns {
        let Some(mut writer) = group.next_column()? else { break };
        write(column, &mut writer)?;
        writer.close()?;
    }
    group.close()?;
    file.into_inner()
}

fn field(column: &Column) -> Result<TypePtr, ParquetError> {
    let unsigned = Some(LogicalType::integer(64, false));
    let (physical, logical) = match column.kind {
        Type::Count => (Physical::INT64, unsigned),
        Type::List => {
            let counter = Node::primitive_type_builder("element", Physical::INT64)
                .with_logical_type(unsigned)
                .with_repetition(Repetition::REQUIRED)
                .build()?;
            let list = Node::group_type_builder("list")
                .with_repetition(Repetition::REPEATED)
                .with_fields(vec![Arc::new(counter)])
                .build()?;
            let column = Node::group_type_builder(&column.name)
                .with_logical_type(Some(LogicalType::List))
                .with_repetition(Repetition::OPTIONAL)
                .with_fields(vec![Arc::new(list)])
                .build()?;
            return Ok(Arc::new(column));
        }
        Type::Real => (Physical::DOUBLE, None),
        Type::Flag => (Physical::BOOLEAN, None),
        Type::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let node = Node::primitive_type_builder(&column.name, physical)
        .with_logical_type(logical)
        .with_repetition(Repetition::OPTIONAL)
        .build()?;
    Ok(Arc::new(node))
}

fn write(column: &Column, writer: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
    let present = column.cells.iter().map(|cell| i16::from(*cell != Cell::Empty));
    let levels: Vec<i16> = present.collect();
    let cells = || column.cells.iter();
    match column.kind {
        Type::Count => {
            // Unsigned numbers of 64 bits are kept as signed ones with the same bits.
            let counts = cells()
                .filter_map(|c| if let Cell::Count(n) = c { Some(n.cast_signed()) } else { None });
            let counts: Vec<i64> = counts.collect();
            writer.typed::<Int64Type>().write_batch(&counts, Some(&levels), None)?;
        }
        Type::Real => {
            let reals = cells().filter_map(|c| if let Cell::Real(x) = c { Some(*x) } else { None });
            let reals: Vec<f64> = reals.collect();
            writer.typed::<DoubleType>().write_batch(&reals, Some(&levels), None)?;
        }
        Type::Flag => {
            let flags = cells().filter_map(|c| if let Cell::Flag(f) = c { Some(*f) } else { None });
            let flags: Vec<bool> = flags.collect();
            writer.typed::<BoolType>().write_batch(&flags, Some(&levels), None)?;
        }
        Type::List => write_lists(column, writer)?,
        Type::Text => {
            let texts = cells().filter(|cell| **cell != Cell::Empty);
            let texts: Vec<ByteArray> = texts.map(|cell| cell.text().as_str().into()).collect();
            writer.typed::<ByteArrayType>().write_batch(&texts, Some(&levels), None)?;
        }
    }
    Ok(())
}

/// A row without a list is at level 0, an empty list at 1, and counters at 2; all counters of a list
/// but the first repeat it.
fn write_lists(
    column: &Column,
    writer: &mut SerializedColumnWriter<'_>,
) -> Result<(), ParquetError> {
    let (mut counts, mut levels, mut repeats) = (Vec::new(), Vec::new(), Vec::new());
    for cell in &column.cells {
        let list = if let Cell::List(list) = cell { list.as_slice() } else { &[] };
        if list.is_empty() {
            levels.push(i16::from(*cell != Cell::Empty));
            repeats.push(0);
        }
        for (number, count) in list.iter().enumerate() {
            counts.push(count.cast_signed());
            levels.push(2);
            repeats.push(i16::from(number > 0));
        }
    }
    writer.typed::<Int64Type>().write_batch(&counts, Some(&levels), Some(&repeats))?;
    Ok(())
}

// Small widgets that several pages use.
#pragma once

#include <QAbstractItemModel>
#include <QGroupBox>
#include <QLabel>
#include <QLayout>
#include <QTableView>

namespace shardplan::gui {

/// A label that wraps, can be selected with the mouse and read with the keyboard.
QLabel* make_text(QWidget* parent);
/// A label that names an error; show_error() hides it when there is none.
QLabel* make_error(QWidget* parent);
void show_error(QLabel* label, const QString& error);
/// A table of whole rows without a grid, sorted by its columns when `sorts`.
QTableView* make_table(QAbstractItemModel* model, const QString& name, QWidget* parent,
                       bool sorts = false);
/// A titled box around a layout.
QGroupBox* make_box(const QString& title, QLayout* layout, QWidget* parent);

/// Text without markup, for screen readers.
QString spoken(const QString& html);

/// Where a number comes from: on hover, and for screen readers.
void set_hint(QWidget* widget, const QString& html);

}  // namespace shardplan::gui

// Small widgets that several pages use.
#pragma once

#include <QAbstractItemModel>
#include <QGroupBox>
#include <QLabel>
#include <QLayout>
#include <QLineEdit>
#include <QScrollArea>
#include <QTableView>
#include <functional>

namespace shardplan::gui {

/// A label that wraps, can be selected with the mouse and read with the keyboard.
QLabel* make_text(QWidget* parent);
/// A label that names an error; show_error() hides it when there is none.
QLabel* make_error(QWidget* parent);
void show_error(QLabel* label, const QString& error);
/// The same for what was typed into a field, which is marked with an icon and keeps its words.
void show_error_at(QLineEdit* edit, QLabel* label, const QString& error);
/// Marks a field alone; "": takes the mark away.
void mark(QLineEdit* edit, const QString& error);
/// Help for a control: a line on hover, and with the terms that it mentions for "What is this?".
void explain(QWidget* widget, const QString& title, const QString& help);
/// A table of whole rows without a grid, sorted by its columns when `sorts`.
QTableView* make_table(QAbstractItemModel* model, const QString& name, QWidget* parent,
                       bool sorts = false);
/// Calls `action` with the row that a person chooses. Tab into a table chooses none, and neither
/// does a filter that takes the chosen row away.
void on_chosen(QTableView* table, const std::function<void(const QModelIndex&)>& action);

/// Shows `words`, and leaves what a person is typing when it says the same.
void show_in(QLineEdit* edit, const QString& words);

/// A button at its end that empties it.
void add_clear_button(QLineEdit* edit);

/// Scrolls what is higher than its place. The keyboard goes to what is inside, which follows it.
QScrollArea* make_scroll(QWidget* content, QWidget* parent);

/// A titled box around a layout.
QGroupBox* make_box(const QString& title, QLayout* layout, QWidget* parent);

/// Text without markup, for screen readers.
QString spoken(const QString& html);

/// Writes a label in a colour.
void set_ink(QWidget* label, const QColor& colour);

/// Where a number comes from: on hover, and for screen readers.
void set_hint(QWidget* widget, const QString& html);

}  // namespace shardplan::gui

// Package house measures the structure of the Go code and the documents, so
// that it cannot get worse unnoticed. scripts/house prints the figures and
// scripts/check holds them to limits.txt. It reads the tree, changes nothing
// but limits.txt when asked, and has no state: its functions may run at once.
//
// Code means Go files that are neither tests nor generated. Sizes cover every
// system's files. References are resolved by the type checker, so they cover
// the files that Linux builds. The measures:
//
//   - methods: those declared on one type, without promoted ones. A type whose
//     methods are all one statement is a facade and has a measure of its own.
//   - fields: those declared in one named struct; an embedded one counts as one.
//   - function, file: lines, from the first to the last.
//   - knot: the most files of a package that can all reach each other by
//     references, which is the largest strongly connected component. One file
//     refers to another when it names anything declared there: a type, a
//     function, a method, a field, a variable or a constant.
//   - back: an arrow is an ordered pair of files, one of which refers to the
//     other. The files are put into an order that few arrows run against; back
//     is the share of those that do, in percent. The order comes from a greedy
//     heuristic and single moves, so it is close to the best one but need not
//     be it. Packages of fewer than ten files are left out.
//   - name: packages that share one name, commands left out.
//   - op: constants of type fault.Op inside a function whose text is not the
//     package and the function ("server.Start").
//   - vocabulary: names such as geoconfig.ObjectID outside that package: types
//     of numbers and texts that have nothing to do with configuration.
//   - test-long, test-form: tests of a package with over 50 letters in their
//     name, and tests not named TestSubject_Behaviour.
//   - returns: the calls of one method are followed through its package, depth
//     first, each function once, interfaces not at all. Each change to a file
//     that was visited before is a return.
//   - doc-mean: words in the mean sentence of a document. doc-long: its
//     sentences of over 30 words. Code blocks, tables, headings and the targets
//     of links are left out, and inline code is one word. A sentence ends with
//     . ? or !, with a colon at the end of a line, and with its paragraph or
//     list item.
//   - short: files of under 30 lines. They are listed and have no limit.
//
// The limits of op, vocabulary, test-long and test-form are those of all
// packages together (subject "all"), so code may move from one to another.
package house

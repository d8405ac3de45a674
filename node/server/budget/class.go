package budget

import "fmt"

// Class says why content goes to another site. A lower number goes first.
type Class uint8

// The classes. The numbers are sent between nodes: never renumber.
const (
	// Foreground is what clients read and write.
	Foreground Class = 0
	// Replication is what an operation waits for: chunks on their way to members
	// that are whole.
	Replication Class = 1
	// Repair is what members lack that were away, or that replace lost ones.
	Repair Class = 2
	// Rebalancing is what members lack that take the place of whole ones.
	Rebalancing Class = 3
)

// classes is how many classes there are.
const classes = 4

var classNames = [classes]string{"foreground", "replication", "repair", "rebalancing"}

func (c Class) String() string {
	if c < classes {
		return classNames[c]
	}
	return fmt.Sprintf("Class(%d)", uint8(c))
}

// Classes lists all classes, the most urgent first.
func Classes() []Class { return []Class{Foreground, Replication, Repair, Rebalancing} }

// byClass is one number of bytes for each class.
type byClass [classes]int64

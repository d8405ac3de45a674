package wide

import "testing"

func TestWide_Counts(t *testing.T) {}

func TestWideCounts(t *testing.T) {}

func TestWide_CountsMoreThanFiftyLettersOfAllInThisVeryLongName(t *testing.T) {}

func TestWide_CountsNamesOfExactlyFiftyLettersAsShortOn(t *testing.T) {}

func TestMain(m *testing.M) {}

func (w *Wide) TestMethod(t *testing.T) {}

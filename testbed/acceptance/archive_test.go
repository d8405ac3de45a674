package acceptance

import (
	"os"
	"path/filepath"
	"testing"
)

// awkward makes a tree with every kind of metadata that an archive keeps.
const awkward = `mkdir -p deep/er
printf 'one' >deep/er/file
ln deep/er/file deep/second
ln -s ../elsewhere deep/link
mkfifo deep/fifo
printf 'x' >"deep/a name with	tab and
newline"
truncate -s 40M deep/sparse
printf 'end' >>deep/sparse
printf 'middle' | dd of=deep/sparse bs=1 seek=20000000 conv=notrunc status=none
chmod 4751 deep/er/file
mkdir -m 3775 deep/sticky
chown 1234:2345 deep/sticky deep/second
chown -h 7:8 deep/link
setfattr -n user.colour -v green deep/er
setfattr -n user.empty deep/second
setfattr -n trusted.secret -v hidden deep/second
setfacl -m u:1234:rw-,g:2345:r-- deep/second
setfacl -d -m u:1234:rwx deep/sticky
for n in $(seq 300); do printf '%s' "$n" >"deep/er/small $n"; done
touch -d '2001-02-03 04:05:06.789012345 UTC' deep/er/file deep/fifo
touch -h -d '1999-12-31 23:59:59.999999999 UTC' deep/link
touch -d '2030-01-01 00:00:00.000000001 UTC' deep/er deep/sticky deep
`

// listing prints everything about a tree but what a copy may not keep (change
// times, inode numbers, blocks, the sizes of directories).
const listing = `find deep ! -type d -printf '%p %y %m %U:%G %n %s %T@ %l\n' | sort
find deep -type d -printf '%p %y %m %U:%G %T@\n' | sort
find deep ! -type l -print0 | sort -z | xargs -0 getfattr -h -d -m - --absolute-names 2>/dev/null
find deep ! -type l -print0 | sort -z | xargs -0 getfacl 2>/dev/null
find deep -type f -print0 | sort -z | xargs -0 sha256sum`

func TestArchives_KeepAllMetadata(t *testing.T) {
	d := startPrograms(t, "rsync", "tar", "setfacl", "setfattr")
	dir := d.mkdir("archive")
	local := t.TempDir()
	d.shell(local, awkward)
	want := d.shell(local, listing)
	t.Run("rsync", func(t *testing.T) {
		if err := os.Mkdir(filepath.Join(dir[0], "rsync"), 0o755); err != nil {
			t.Fatal(err)
		}
		d.shell(local, "rsync -aHAXS --numeric-ids deep '"+dir[0]+"/rsync/'")
		d.same("listing at another site", d.shell(dir[1]+"/rsync", listing), want)
		d.same("what a second rsync would change", d.shell(local, "rsync -aHAXSn --numeric-ids --checksum --delete -i deep '"+dir[2]+"/rsync/'"), "")
		back := t.TempDir()
		d.shell(dir[2]+"/rsync", "rsync -aHAXS --numeric-ids deep '"+back+"/'")
		d.same("listing of the copy back", d.shell(back, listing), want)
	})
	t.Run("tar", func(t *testing.T) {
		if err := os.Mkdir(filepath.Join(dir[0], "tar"), 0o755); err != nil {
			t.Fatal(err)
		}
		options := "--acls --xattrs --xattrs-include='*' --numeric-owner --sparse --format=posix"
		d.shell(local, "tar "+options+" -cf '"+dir[0]+"/tar/all.tar' deep")
		d.shell(dir[1]+"/tar", "tar "+options+" -xpf all.tar")
		d.same("listing at another site", d.shell(dir[2]+"/tar", listing), want)
		back := t.TempDir()
		d.shell(dir[2]+"/tar", "tar "+options+" -cf - deep | (cd '"+back+"' && tar "+options+" -xpf -)")
		d.same("listing of the copy back", d.shell(back, listing), want)
	})
}

package acceptance

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

// gitEnv keeps git from reading the settings of whoever runs the test.
const gitEnv = `export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_TERMINAL_PROMPT=0
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com
export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*' GIT_CONFIG_KEY_1=init.defaultBranch GIT_CONFIG_VALUE_1=main
`

func TestGit_WorksFromTwoMounts(t *testing.T) {
	d := startPrograms(t, "git")
	dir := d.mkdir("git")
	d.shell(dir[0], gitEnv+"cp -r '"+source(t)+"' tree\ncd tree\ngit init -q\ngit add .\ngit commit -qm first")
	d.shell(dir[1], gitEnv+"git clone -q --no-local --bare tree bare.git\ngit -C bare.git fsck --full --strict")
	const commits = 15
	var g errgroup.Group
	for i, path := range dir[:2] {
		g.Go(func() error {
			script := gitEnv + fmt.Sprintf(`cd '%s'
git clone -q bare.git clone%d
cd clone%d
git checkout -q -b branch%d
for n in $(seq %d); do
	echo "$n" >>by-%d
	git add .
	git commit -qm "commit $n"
	git push -q origin branch%d
done`, path, i, i, i, commits, i, i)
			if out, err := try("sh", "-euc", script); err != nil {
				return fmt.Errorf("at %s: %w: %s", d.Sites[i].Name, err, tail([]byte(out), 2000))
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	// One working tree, used from one mount after the other.
	for n := range 10 {
		d.shell(dir[n%3], gitEnv+fmt.Sprintf("cd tree\ntest -z \"$(git status --porcelain)\"\necho %d >>turns\ngit add turns\ngit commit -qm 'turn %d'", n, n))
	}
	d.shell(dir[2], gitEnv+"git -C bare.git gc -q --prune=now\ngit -C bare.git fsck --full --strict\ngit -C tree gc -q\ngit -C tree fsck --full --strict")
	for i := range 2 {
		got := strings.TrimSpace(d.shell(dir[2], gitEnv+fmt.Sprintf("git -C bare.git rev-list --count branch%d", i)))
		if want := fmt.Sprint(commits + 1); got != want {
			t.Errorf("branch%d has %s commits, want %s", i, got, want)
		}
	}
	if got := strings.TrimSpace(d.shell(dir[0], gitEnv+"git -C tree rev-list --count HEAD")); got != "11" {
		t.Errorf("the shared working tree has %s commits, want 11", got)
	}
	if got := d.shell(dir[1], gitEnv+"git -C tree status --porcelain"); got != "" {
		t.Errorf("the shared working tree is not clean: %s", got)
	}
}

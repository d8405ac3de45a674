// Package same is here, too.
package same

// Package same is here.
package same

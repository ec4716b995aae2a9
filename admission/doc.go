// Package admission decides, at every effect, whether this workflow may act now.
package admission

package knot

const most = made

/** The part of picomatch that is used; the package brings no types. */
declare module 'picomatch' {
  const picomatch: {
    makeRe(glob: string, options: { dot?: boolean; nonegate?: boolean; noextglob?: boolean; posix?: boolean; maxLength?: number }): RegExp
  }
  export default picomatch
}

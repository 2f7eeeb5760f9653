; The primes below the input's only word, by Eratosthenes' sieve.
;   r1 input's address, r3 first free address
        load  r5, r1, 0        ; limit
        addi  r6, r3, 0        ; sieve: a word for each number, not zero if it is composite
        add   r7, r6, r5       ; the primes, behind the sieve
        addi  r8, r7, 0        ; end of the primes
        set   r9, 2            ; number
        set   r10, 1
next:   jge   r9, r5, done
        add   r11, r6, r9
        load  r12, r11, 0
        jne   r12, r0, skip
        store r9, r8, 0        ; a prime
        addi  r8, r8, 1
        add   r13, r9, r9      ; its multiples are none
mark:   jge   r13, r5, skip
        add   r11, r6, r13
        store r10, r11, 0
        add   r13, r13, r9
        jump  mark
skip:   addi  r9, r9, 1
        jump  next
done:   sub   r14, r8, r7
        halt  r7, r14
